//! Routes of files in a program that was built without the feature `ui`. There are none: those of
//! a configuration and of Rust code are refused before the start.

use std::path::PathBuf;

use actix_web::HttpRequest;

use crate::web::custom::handler::CustomHandler;
use crate::web::ids::path_not_found;

/// Answers that there is no such path.
pub(crate) fn file(_: PathBuf) -> CustomHandler {
    CustomHandler::of(|request: HttpRequest| {
        std::future::ready(Err::<&'static str, _>(path_not_found(&request)))
    })
}

/// Answers that there is no such path.
pub(crate) fn folder(root: PathBuf, _: usize) -> CustomHandler {
    file(root)
}
