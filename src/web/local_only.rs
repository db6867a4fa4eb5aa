//! Access to routes that change the installation: callers with a token, and callers on loopback.

use std::future::{Ready, ready};
use std::net::IpAddr;

use actix_web::dev::Payload;
use actix_web::http::header::{HOST, HeaderMap, HeaderValue, ORIGIN, VIA};
use actix_web::{FromRequest, HttpMessage as _, HttpRequest};

use crate::api::ApiError;
use crate::api::caller::Caller;
use crate::web::origin::is_local_host;

/// Caller that may change the installation. As an argument of a handler, it refuses all others
/// before the body is read.
#[derive(Debug)]
pub(crate) struct Operator;

impl FromRequest for Operator {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(if is_operator(request) { Ok(Self) } else { Err(ApiError::LocalOnly) })
    }
}

/// Returns true for callers with a token, and for callers on loopback.
pub(crate) fn is_operator(request: &HttpRequest) -> bool {
    let is_known = request.extensions().get::<Caller>().is_some_and(|it| it.user().is_some());
    is_known || is_local(request)
}

/// Returns true for a request of a program on this machine that is not forwarded.
fn is_local(request: &HttpRequest) -> bool {
    let address = request.peer_addr().map(|peer| peer.ip());
    let is_here = address.as_ref().map(IpAddr::to_canonical).is_some_and(|it| it.is_loopback());
    is_here && !is_forwarded(request.headers()) && !is_rebound(request.headers())
}

/// Returns true if a proxy on this machine forwards the request of another client.
fn is_forwarded(headers: &HeaderMap) -> bool {
    // Forwarded, X-Forwarded-*, X-Original-Forwarded-For; X-Real-IP, CF-Connecting-IP and others.
    let is_mark =
        |name: &str| name.contains("forwarded") || name.ends_with("-ip") || name == VIA.as_str();
    headers.keys().any(|name| is_mark(name.as_str()))
}

/// Returns true if a page of another site may have sent the request: it can make its own host name
/// resolve to loopback, and its browser runs on this machine.
fn is_rebound(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).map(HeaderValue::to_str);
    headers.contains_key(ORIGIN) && !host.is_some_and(|host| host.is_ok_and(is_local_host))
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;

    use actix_web::test::TestRequest;
    use serde_json::json;

    use super::*;
    use crate::auth::User;

    type Headers<'a> = &'a [(&'a str, &'a str)];

    fn asked(peer: Option<&str>, headers: Headers<'_>) -> TestRequest {
        let mut request = TestRequest::post().uri("/updates");
        if let Some(peer) = peer {
            request = request.peer_addr(peer.parse::<SocketAddr>().unwrap());
        }
        headers.iter().fold(request, |request, header| request.append_header(*header))
    }

    fn refusal(request: &HttpRequest) -> Option<ApiError> {
        Operator::from_request(request, &mut Payload::None).into_inner().err()
    }

    #[test]
    fn a_caller_is_local_by_its_socket_only() {
        const HERE: Option<&str> = Some("127.0.0.1:5000");
        let rows: [(Option<&str>, Headers<'_>, bool); 27] = [
            (HERE, &[], true),
            (Some("127.8.9.1:5000"), &[], true),
            (Some("[::1]:5000"), &[], true),
            (Some("[::ffff:127.0.0.1]:5000"), &[], true),
            (HERE, &[("host", "greenroom.example")], true),
            (HERE, &[("host", "localhost:3141"), ("origin", "http://localhost:5173")], true),
            (HERE, &[("host", "[::1]:3141"), ("origin", "http://[::1]:3141")], true),
            (None, &[], false),
            (Some("10.0.0.1:5000"), &[], false),
            (Some("[::ffff:10.0.0.1]:5000"), &[], false),
            (Some("[fe80::1]:5000"), &[], false),
            (Some("0.0.0.0:5000"), &[], false),
            // Headers never make a caller local, and may make it remote.
            (Some("10.0.0.1:5000"), &[("x-forwarded-for", "127.0.0.1")], false),
            (Some("10.0.0.1:5000"), &[("forwarded", "for=127.0.0.1")], false),
            (Some("10.0.0.1:5000"), &[("host", "localhost")], false),
            (HERE, &[("x-forwarded-for", "10.0.0.1")], false),
            (HERE, &[("x-forwarded-for", "127.0.0.1")], false),
            (HERE, &[("X-Forwarded-Host", "a.example")], false),
            (HERE, &[("Forwarded", "for=10.0.0.1")], false),
            (HERE, &[("X-Real-IP", "10.0.0.1")], false),
            (HERE, &[("x-real-ip", "")], false),
            (HERE, &[("via", "1.1 proxy")], false),
            (HERE, &[("CF-Connecting-IP", "10.0.0.1")], false),
            (HERE, &[("X-Client-IP", "10.0.0.1")], false),
            (HERE, &[("X-Original-Forwarded-For", "10.0.0.1")], false),
            (HERE, &[("host", "evil.example"), ("origin", "http://evil.example")], false),
            (HERE, &[("origin", "http://evil.example")], false),
        ];
        for (peer, headers, is_admitted) in rows {
            let request = asked(peer, headers).to_http_request();
            let expected = (!is_admitted).then_some(ApiError::LocalOnly);
            assert_eq!(refusal(&request), expected, "{peer:?} {headers:?}");
        }
    }

    #[test]
    fn a_caller_with_a_token_may_be_remote() {
        let user = User::new(json!({ "id": "ann" }).as_object().cloned().unwrap()).unwrap();
        let rows = [
            (Caller::checked(Some(Arc::new(user)), None), None),
            (Caller::checked(None, None), Some(ApiError::LocalOnly)),
            (Caller::unchecked(), Some(ApiError::LocalOnly)),
        ];
        for (caller, expected) in rows {
            let headers = [("x-forwarded-for", "10.0.0.1")];
            let request = asked(Some("10.0.0.1:5000"), &headers).to_http_request();
            request.extensions_mut().insert(caller.clone());
            assert_eq!(refusal(&request), expected, "{caller:?}");
        }
    }
}
