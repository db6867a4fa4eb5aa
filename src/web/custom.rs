//! Routes that whoever runs the server added: handlers in Rust, and ways to workflows, agents and
//! files.

pub(crate) mod files;
pub(crate) mod handler;
pub(crate) mod payload;
pub(crate) mod shortcuts;

use std::borrow::Cow;
use std::fmt;

use actix_web::middleware::from_fn;
use actix_web::{FromRequest, Handler, Responder, web};

use crate::api::catalogue::{Access, Answer, Class, Method, Route as Row, RouteName, Tag};
use crate::web::custom::handler::CustomHandler;

/// What stands in the catalogue when nobody has said anything.
const SUMMARY: &str = "Added by this server";

/// Wraps a handler of a program: what it reads is bounded for it.
fn foreign<F, Args>(handler: F) -> CustomHandler
where
    F: Handler<Args> + Send + Sync,
    Args: FromRequest + 'static,
    F::Output: Responder + 'static,
{
    CustomHandler::bound(move |route| route.to(handler.clone()).wrap(from_fn(payload::bound)))
}

/// Tells the extractors of the framework what is done with bodies that they cannot read. Their
/// bound is that of the payload, which has none behind an upgrade.
pub(crate) fn configure(service: &mut web::ServiceConfig, body_bytes_max: usize) {
    let json = web::JsonConfig::default().limit(body_bytes_max);
    service
        .app_data(json.error_handler(payload::json_refusal))
        .app_data(web::FormConfig::default().limit(body_bytes_max))
        .app_data(web::PayloadConfig::new(body_bytes_max));
}

/// Routes that a program adds, each with an actix-web handler.
///
/// A path has fixed segments, `:name` for any one and, at its end, `*` for everything below; a
/// handler finds them in `web::Path` (`*` as `tail`). A route needs a token, once somebody checks
/// tokens, unless it is [public](AddedRoute::public). Beside what the framework offers, a handler
/// can ask for a [`crate::Runtime`] (as `web::Data`), for the [`crate::routes::Caller`], for the
/// [`crate::routes::Authenticated`] user and, to end a long answer when the server stops, for the
/// [`crate::routes::Shutdown`].
///
/// Bodies keep to `[server] body_bytes_max` and `body_timeout`. An error of a handler is answered
/// in the envelope; [`crate::api::ApiError`] has those of the server itself.
#[derive(Debug, Default)]
pub struct Routes {
    added: Vec<AddedRoute>,
}

/// A route that a program adds.
#[derive(Debug)]
pub struct AddedRoute {
    method: Method,
    path: String,
    handler: CustomHandler,
    summary: Option<String>,
    is_public: bool,
    is_stream: bool,
}

impl Routes {
    /// Answers GET, and HEAD as well.
    pub fn get<F, Args>(&mut self, path: &str, handler: F) -> &mut AddedRoute
    where
        F: Handler<Args> + Send + Sync,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.add(Method::Get, path, foreign(handler))
    }

    /// Answers POST.
    pub fn post<F, Args>(&mut self, path: &str, handler: F) -> &mut AddedRoute
    where
        F: Handler<Args> + Send + Sync,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.add(Method::Post, path, foreign(handler))
    }

    /// Answers PUT.
    pub fn put<F, Args>(&mut self, path: &str, handler: F) -> &mut AddedRoute
    where
        F: Handler<Args> + Send + Sync,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.add(Method::Put, path, foreign(handler))
    }

    /// Answers PATCH.
    pub fn patch<F, Args>(&mut self, path: &str, handler: F) -> &mut AddedRoute
    where
        F: Handler<Args> + Send + Sync,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.add(Method::Patch, path, foreign(handler))
    }

    /// Answers DELETE.
    pub fn delete<F, Args>(&mut self, path: &str, handler: F) -> &mut AddedRoute
    where
        F: Handler<Args> + Send + Sync,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.add(Method::Delete, path, foreign(handler))
    }

    /// The routes in the order in which they were added.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &AddedRoute> {
        self.added.iter()
    }

    /// Patterns of those that need no token.
    pub(crate) fn public_routes(&self) -> impl Iterator<Item = String> {
        self.iter().filter(|route| route.is_public).map(ToString::to_string)
    }

    fn add(&mut self, method: Method, path: &str, handler: CustomHandler) -> &mut AddedRoute {
        self.added.push(AddedRoute {
            method,
            path: path.to_owned(),
            handler,
            summary: None,
            is_public: false,
            is_stream: false,
        });
        let last = self.added.len() - 1;
        &mut self.added[last]
    }
}

impl AddedRoute {
    /// Needs no token, unless a rule of the configuration says otherwise.
    pub fn public(&mut self) -> &mut Self {
        self.is_public = true;
        self
    }

    /// Says in a line what the route does: for the documentation.
    pub fn summary(&mut self, summary: &str) -> &mut Self {
        self.summary = Some(summary.to_owned());
        self
    }

    /// Says that the answer goes on for long: then HEAD, which would wait for it, is refused.
    pub fn streaming(&mut self) -> &mut Self {
        self.is_stream = true;
        self
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn handler(&self) -> CustomHandler {
        self.handler.clone()
    }

    /// Its row in the catalogue, as the one of this number.
    pub(crate) fn row(&self, index: usize) -> Row {
        let class = if self.method.changes() { Class::Write } else { Class::Read };
        Row {
            method: self.method,
            path: Cow::Owned(self.path.clone()),
            name: RouteName::Custom(index),
            answer: if self.is_stream { Answer::Events } else { Answer::Json },
            tag: Tag::Custom,
            class: if self.is_stream { Class::Stream } else { class },
            // Public ones are so by a pattern, which counts under every default.
            access: Access::Protected,
            is_owned: false,
            summary: self.summary.clone().map_or(Cow::Borrowed(SUMMARY), Cow::Owned),
            like: None,
        }
    }
}

impl fmt::Display for AddedRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method.as_str(), self.path)
    }
}
