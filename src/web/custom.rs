//! Routes added by a program or the configuration: handlers in Rust, and shortcuts to workflows,
//! agents and files.

#[cfg(feature = "ui")]
pub(crate) mod files;
pub(crate) mod handler;
#[cfg(not(feature = "ui"))]
pub(crate) mod no_files;
pub(crate) mod payload;
pub(crate) mod shortcuts;

#[cfg(not(feature = "ui"))]
pub(crate) use self::no_files as files;

use std::borrow::Cow;
use std::fmt;

use actix_web::middleware::from_fn;
use actix_web::{FromRequest, Handler, Responder, web};

use crate::api::catalogue::{Access, Answer, Class, Method, Route as Row, RouteName, Tag};
use crate::web::custom::handler::CustomHandler;

/// Summary of routes without one.
const SUMMARY: &str = "Added by this server";

/// Wraps a handler of a program with the limits on request bodies.
fn foreign<F, Args>(handler: F) -> CustomHandler
where
    F: Handler<Args> + Send + Sync,
    Args: FromRequest + 'static,
    F::Output: Responder + 'static,
{
    CustomHandler::bound(move |route| route.to(handler.clone()).wrap(from_fn(payload::bound)))
}

/// Configures the extractors of actix-web: size limits, and the refusal of invalid JSON. The limits
/// matter behind an upgrade, where [`payload::bound`] does not apply.
pub(crate) fn configure(service: &mut web::ServiceConfig, body_bytes_max: usize) {
    let json = web::JsonConfig::default().limit(body_bytes_max);
    service
        .app_data(json.error_handler(payload::json_refusal))
        .app_data(web::FormConfig::default().limit(body_bytes_max))
        .app_data(web::PayloadConfig::new(body_bytes_max));
}

/// Routes that a program adds, each with an actix-web handler.
///
/// A path has fixed segments, `:name` for any one segment and, at its end, `*` for everything
/// below; a handler finds them in `web::Path` (`*` as `tail`). If authentication is configured, a
/// route requires a token unless it is [public](AddedRoute::public). Besides the extractors of
/// actix-web, a handler can take a [`crate::Runtime`] (as `web::Data`), the
/// [`crate::routes::Caller`], the [`crate::routes::Authenticated`] user and, to end a long answer
/// when the server stops, the [`crate::routes::Shutdown`].
///
/// Bodies are limited by `[server] body_bytes_max` and `body_timeout`. An error of a handler is
/// answered in the envelope; [`crate::api::ApiError`] has the errors of the server itself.
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

/// Defines methods of [`Routes`] that add a route.
macro_rules! adding {
    ($($name:ident, $method:ident, $doc:literal;)*) => {
        impl Routes {
            $(
                #[doc = $doc]
                pub fn $name<F, Args>(&mut self, path: &str, handler: F) -> &mut AddedRoute
                where
                    F: Handler<Args> + Send + Sync,
                    Args: FromRequest + 'static,
                    F::Output: Responder + 'static,
                {
                    self.add(Method::$method, path, foreign(handler))
                }
            )*
        }
    };
}

adding! {
    get, Get, "Adds a route for GET and HEAD.";
    post, Post, "Adds a route for POST.";
    put, Put, "Adds a route for PUT.";
    patch, Patch, "Adds a route for PATCH.";
    delete, Delete, "Adds a route for DELETE.";
}

impl Routes {
    /// Returns the routes in the order in which they were added.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &AddedRoute> {
        self.added.iter()
    }

    /// Returns the patterns of public routes.
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
    /// Requires no token, unless a rule of the configuration does.
    pub fn public(&mut self) -> &mut Self {
        self.is_public = true;
        self
    }

    /// Sets the one-line summary for the API document.
    pub fn summary(&mut self, summary: &str) -> &mut Self {
        self.summary = Some(summary.to_owned());
        self
    }

    /// Marks the answer as a long-running stream. HEAD, which would wait for its end, is refused.
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

    /// Returns its catalogue row, as added route number `index`.
    pub(crate) fn row(&self, index: usize) -> Row {
        let class = if self.method.changes() { Class::Write } else { Class::Read };
        Row {
            method: self.method,
            path: Cow::Owned(self.path.clone()),
            name: RouteName::Custom(index),
            answer: if self.is_stream { Answer::Events } else { Answer::Json },
            tag: Tag::Custom,
            class: if self.is_stream { Class::Stream } else { class },
            // Public routes are listed as patterns, which apply under every default.
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
