//! The server's handle as an argument of handlers.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest, web};

use crate::api::ApiError;
use crate::handle::Handle;

impl FromRequest for Handle {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let own = request.app_data::<web::Data<Self>>();
        ready(own.map(|own| Self::clone(own)).ok_or(ApiError::Internal))
    }
}
