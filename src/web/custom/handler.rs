//! A handler that is not in the catalogue's own table.

use std::fmt;
use std::sync::Arc;

use actix_web::{FromRequest, Handler, Responder, Route};

/// A handler from outside, bound once per worker.
#[derive(Clone)]
pub(crate) struct CustomHandler(Arc<dyn Fn(Route) -> Route + Send + Sync>);

impl fmt::Debug for CustomHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CustomHandler")
    }
}

impl CustomHandler {
    /// A handler of ours: it bounds what it reads.
    pub(crate) fn of<F, Args>(handler: F) -> Self
    where
        F: Handler<Args> + Send + Sync,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        Self(Arc::new(move |route| route.to(handler.clone())))
    }

    /// A handler as it is bound: with middleware of its own.
    pub(crate) fn bound(bind: impl Fn(Route) -> Route + Send + Sync + 'static) -> Self {
        Self(Arc::new(bind))
    }

    pub(crate) fn bind(&self, route: Route) -> Route {
        (self.0)(route)
    }
}
