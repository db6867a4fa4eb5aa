//! Handlers of added routes.

use std::fmt;
use std::sync::Arc;

use actix_web::{FromRequest, Handler, Responder, Route};

/// Handler of an added route, bound once per worker.
#[derive(Clone)]
pub(crate) struct CustomHandler(Arc<dyn Fn(Route) -> Route + Send + Sync>);

impl fmt::Debug for CustomHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CustomHandler")
    }
}

impl CustomHandler {
    /// Wraps a handler of ours, which limits request bodies itself.
    pub(crate) fn of<F, Args>(handler: F) -> Self
    where
        F: Handler<Args> + Send + Sync,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        Self(Arc::new(move |route| route.to(handler.clone())))
    }

    /// Wraps a function that binds a handler together with its middleware.
    pub(crate) fn bound(bind: impl Fn(Route) -> Route + Send + Sync + 'static) -> Self {
        Self(Arc::new(bind))
    }

    pub(crate) fn bind(&self, route: Route) -> Route {
        (self.0)(route)
    }
}
