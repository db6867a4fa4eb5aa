//! Links to asks: pages without scripts, for people without a token. The token of a link is in its
//! path, so that no browser adds it to the requests of other pages.

mod page;

use std::sync::LazyLock;

use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderValue, REFERRER_POLICY,
    X_FRAME_OPTIONS,
};
use actix_web::{HttpResponse, ResponseError as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use greenroom_actors::requests::AskDetail;
use sha2::{Digest, Sha256};

use super::{Purpose, check_like, id_of, seen_revision};
use crate::api::error::AskRefusal;
use crate::api::inbox::{AskForm, Change, Link};
use crate::api::{ApiError, inbox};
use crate::web::body::Body;
use crate::web::call::{Answer, Call};
use crate::web::ids::segment;
use crate::web::inbox::links::page::{Filled, STYLE, refusal, thanks};
use crate::web::query::pairs_of;
use crate::web::respond;

/// Segment of the token: `/inbox/link/:token`.
const TOKEN: usize = 3;

/// Allows the style of the page and its form, and nothing else: no script, no file, no frame.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let style = STANDARD.encode(Sha256::digest(STYLE));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; img-src data:; base-uri 'none'; \
         form-action 'self'; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

/// `POST /inbox/:askId/link`. Refused like a resume of the execution.
pub(crate) async fn make(call: Call, body: Body) -> Answer {
    let (id, body) = body.take_for(id_of(&call.request)).await?;
    let ask = inbox::find(&call.runtime, &id, &call.caller).await?;
    check_like(&call, Purpose::Change, &ask)?;
    let change = Change {
        runtime: &call.runtime,
        ask,
        body: body.as_deref(),
        caller: &call.caller,
        permissions: call.permissions(),
        force_roles: &[],
        revision: seen_revision(&call.request)?,
    };
    let link = inbox::make_link(change, call.settings.config.links.as_ref()).await?;
    Ok(respond::json(link))
}

/// `GET /inbox/link/:token`. Changes nothing: scanners of mail follow links.
pub(crate) async fn show(call: Call) -> HttpResponse {
    match follow(&call).await {
        Ok((link, detail)) => {
            let filled = Filled { link: &link, detail: &detail, given: &[], mistakes: &[] };
            guarded(HttpResponse::Ok().content_type(HTML).body(filled.html()))
        }
        Err(error) => refused(&error),
    }
}

/// `POST /inbox/link/:token`.
pub(crate) async fn answer(call: Call, body: Body) -> HttpResponse {
    let outcome = answered(&call, body).await;
    outcome.unwrap_or_else(|error| refused(&error))
}

async fn answered(call: &Call, body: Body) -> Answer {
    let bytes = body.read_form().await;
    let (link, detail) = follow(call).await?;
    let given = pairs_of(&bytes?)?;
    let form = AskForm::of(&detail);
    let read = match inbox::declining(&detail, &given) {
        Some(declined) => Ok(declined),
        None => form.read(&given),
    };
    let mistakes = match read {
        Err(mistakes) => mistakes,
        Ok(data) => {
            let (runtime, permissions) = (&call.runtime, call.permissions());
            match inbox::answer_with_link(runtime, &link, &detail, data, permissions).await {
                Ok(_) => return Ok(guarded(HttpResponse::Ok().content_type(HTML).body(thanks()))),
                Err(ApiError::Ask(AskRefusal::InvalidData(why))) => vec![form.mistake(&why)],
                Err(error) => return Err(error),
            }
        }
    };
    let texts: Vec<_> = mistakes.iter().map(|mistake| mistake.text.as_str()).collect();
    let invalid = ApiError::Ask(AskRefusal::InvalidData(texts.join("; ")));
    let filled = Filled { link: &link, detail: &detail, given: &given, mistakes: &mistakes };
    Ok(as_page(&invalid, filled.html()))
}

async fn follow(call: &Call) -> Result<(Link, AskDetail), ApiError> {
    let links = call.settings.config.links.as_ref();
    inbox::follow_link(&call.runtime, links, segment(&call.request, TOKEN)).await
}

const HTML: &str = "text/html; charset=utf-8";

/// Shows a refusal to a person.
fn refused(error: &ApiError) -> HttpResponse {
    as_page(error, refusal(error))
}

/// Returns a refusal with its status and headers, and a page in place of JSON.
fn as_page(error: &ApiError, html: String) -> HttpResponse {
    let mut response = error.error_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(HTML));
    guarded(response.set_body(html).map_into_boxed_body())
}

/// Adds the headers of pages whose address is a credential.
fn guarded(mut page: HttpResponse) -> HttpResponse {
    let headers: &mut HeaderMap = page.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, POLICY.clone());
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    page
}
