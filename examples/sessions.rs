//! Sign-in with a password and a session cookie: a custom identity provider, custom routes, and a
//! tool that knows its caller.
//!
//! ```text
//! cargo run --example sessions
//! ```
//!
//! It runs with `config.toml`, including its workflows and agents; `--config FILE` names another
//! file. Requests without a session are refused:
//!
//! ```text
//! curl localhost:3141/me
//! curl localhost:3141/login -c jar -H 'content-type: application/json' \
//!     -d '{"user": "ann", "password": "open sesame"}'
//! curl localhost:3141/me -b jar
//! curl localhost:3141/reports/7 -b jar
//! curl localhost:3141/agents/clerk/text -b jar -H 'content-type: application/json' \
//!     -d '{"input": "which reports are mine?"}'
//! curl localhost:3141/logout -b jar -X POST
//! ```

#[path = "support/arguments.rs"]
mod arguments;

use std::collections::HashMap;
use std::error::Error;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use greenroom::actix_web::error::{ErrorNotFound, ErrorUnauthorized};
use greenroom::actix_web::http::header::SET_COOKIE;
use greenroom::actix_web::{self, HttpRequest, HttpResponse, web};
use greenroom::adapters::mock::{MockConfig, MockModel, MockRule};
use greenroom::api::ApiError;
use greenroom::auth::{AuthError, AuthProvider, RequestHead, User, cookie};
use greenroom::builder::Agent;
use greenroom::routes::Authenticated;
use greenroom::runtime::{Clock, SystemClock, Timestamp};
use greenroom::tool::{ToolContext, ToolError};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// Name, password, role. A real directory would store slow hashes of passwords.
const PEOPLE: [(&str, &str, &str); 2] =
    [("ann", "open sesame", "staff"), ("ben", "let me in", "guest")];

/// Number, owner, text.
const REPORTS: [(u32, &str, &str); 3] =
    [(7, "ann", "All is well"), (8, "ben", "It rains"), (9, "ann", "All is still well")];

const COOKIE: &str = "session";
const SESSION: Duration = Duration::from_secs(8 * 3600);
/// Limit of open sessions; further sign-ins are refused.
const SESSIONS_MAX: usize = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let sessions = Sessions::default();
    let (entering, leaving) = (sessions.clone(), sessions.clone());
    arguments::greenroom()?
        .auth(sessions)
        .routes(|routes| {
            let login = move |form: web::Json<Credentials>| ready(entering.login(&form));
            routes.post("/login", login).summary("Sign in with user and password");
            let logout = move |request: HttpRequest| ready(leaving.logout(&request));
            routes.post("/logout", logout).summary("End the session");
            routes.get("/me", me).summary("Show the signed-in user");
            routes.get("/reports/:id", report).summary("Show a report of the user");
        })
        .model("clerk", Arc::new(clerk()?))
        .tool(
            "my_reports",
            "Lists the reports of the caller",
            json!({ "type": "object" }),
            my_reports,
        )
        .agent(
            Agent::new("clerk")
                .name("Clerk")
                .description("Finds reports")
                .model("clerk")
                .tools(["my_reports"]),
        )
        .serve()?;
    Ok(())
}

/// Signed-in users by the value of their cookie.
#[derive(Clone, Default)]
struct Sessions(Arc<Mutex<HashMap<String, User>>>);

#[derive(Deserialize)]
struct Credentials {
    user: String,
    password: String,
}

impl Sessions {
    fn login(&self, form: &Credentials) -> Result<HttpResponse, actix_web::Error> {
        let known = PEOPLE.iter().find(|(name, password, _)| {
            (*name, *password) == (form.user.as_str(), form.password.as_str())
        });
        // the same text for both mistakes: it does not reveal which accounts exist
        let Some((name, _, role)) = known else {
            return Err(ErrorUnauthorized("Wrong user or password"));
        };
        let now = SystemClock.now();
        let ends_at = now.plus_ms(u64::try_from(SESSION.as_millis()).unwrap_or(u64::MAX));
        let user = user(name, role).map_err(ApiError::from)?.until(Some(ends_at));
        // 122 random bits
        let id = Uuid::new_v4().simple().to_string();
        let mut open = self.open();
        open.retain(|_, user| !has_expired(user, now));
        if open.len() >= SESSIONS_MAX {
            return Err(ApiError::Busy { execution: None }.into());
        }
        open.insert(id.clone(), user);
        let seconds = SESSION.as_secs();
        // add `Secure` if the server is reached by HTTPS
        let value = format!("{COOKIE}={id}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}");
        Ok(HttpResponse::Ok().insert_header((SET_COOKIE, value)).json(json!({ "user": name })))
    }

    fn logout(&self, request: &HttpRequest) -> HttpResponse {
        if let Some(id) = cookie(request, COOKIE) {
            self.open().remove(id);
        }
        let value = format!("{COOKIE}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0");
        HttpResponse::NoContent().insert_header((SET_COOKIE, value)).finish()
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, User>> {
        // a panic cannot leave the map half changed
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AuthProvider for Sessions {
    fn kind(&self) -> &str {
        "sessions"
    }

    fn token<'r>(&self, request: &'r dyn RequestHead) -> Option<std::borrow::Cow<'r, str>> {
        cookie(request, COOKIE).map(Into::into)
    }

    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<User, AuthError>> {
        let known = self.open().get(token).cloned();
        let verdict = match known {
            Some(user) if has_expired(&user, SystemClock.now()) => Err(AuthError::Expired),
            Some(user) => Ok(user),
            None => Err(AuthError::invalid("no such session")),
        };
        ready(verdict).boxed()
    }

    fn public_routes(&self) -> Vec<String> {
        vec!["POST /login".to_owned()]
    }
}

/// Makes the user that routes, agents and tools see.
fn user(name: &str, role: &str) -> Result<User, AuthError> {
    let profile: [(_, Value); 2] = [("id", name.into()), ("roles", json!([role]))];
    User::new(Map::from_iter(profile.map(|(key, value)| (key.to_owned(), value))))
}

fn has_expired(user: &User, now: Timestamp) -> bool {
    user.expires_at().is_some_and(|end| end <= now)
}

/// `GET /me`.
async fn me(Authenticated(user): Authenticated) -> web::Json<Map<String, Value>> {
    ready(web::Json(user.profile().clone())).await
}

/// `GET /reports/:id`. Reports of other users are not found.
async fn report(
    Authenticated(user): Authenticated,
    id: web::Path<u32>,
) -> Result<web::Json<Value>, actix_web::Error> {
    let found =
        REPORTS.iter().find(|(number, owner, _)| *number == *id && user.id() == Some(*owner));
    let answer = match found {
        Some((number, _, text)) => Ok(web::Json(json!({ "report": number, "text": text }))),
        None => Err(ErrorNotFound(format!("There is no report {id}"))),
    };
    ready(answer).await
}

/// Lists the caller's reports. The context has the user, whatever the route of the call.
async fn my_reports(_: Value, context: ToolContext) -> Result<Value, ToolError> {
    let user = context.user_id.ok_or("the call has no user")?;
    let own = REPORTS.iter().filter(|(_, owner, _)| *owner == &*user);
    Ok(own.map(|(number, ..)| *number).collect())
}

/// Makes a mock model that calls the tool and answers with its result.
fn clerk() -> Result<MockModel, greenroom::Problems> {
    let rules = vec![
        MockRule::reply("Your reports: {{ tool_results[0].output }}").when("tool_results"),
        MockRule::call("my_reports", json!({})).when("tools"),
    ];
    MockModel::new(MockConfig { rules, ..MockConfig::default() })
}
