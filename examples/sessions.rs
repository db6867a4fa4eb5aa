//! People sign in with a password and are known by a cookie from then on: a provider of one's own,
//! routes of one's own, and a tool that knows who asks.
//!
//! ```text
//! cargo run --example sessions
//! ```
//!
//! It serves on `config.toml`, whose workflows and agents are there too; `--config FILE` names
//! another one. Without a session there is nothing to see:
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

use std::collections::HashMap;
use std::error::Error;
use std::future::ready;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::Parser;
use futures_util::future::{BoxFuture, FutureExt as _};
use greenroom::Greenroom;
use greenroom::actix_web::error::{ErrorNotFound, ErrorUnauthorized};
use greenroom::actix_web::http::header::SET_COOKIE;
use greenroom::actix_web::{self, HttpRequest, HttpResponse, web};
use greenroom::adapters::mock::{MockAction, MockConfig, MockModel, MockRule};
use greenroom::api::ApiError;
use greenroom::auth::{AuthError, AuthProvider, RequestHead, User, cookie};
use greenroom::builder::Agent;
use greenroom::routes::Authenticated;
use greenroom_actors::agent::tool::{ToolContext, ToolError};
use greenroom_actors::domain::definition::Projection;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::clock::{Clock, SystemClock};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// Name, password, role. In place of a directory, which would keep slow hashes of passwords.
const PEOPLE: [(&str, &str, &str); 2] =
    [("ann", "open sesame", "staff"), ("ben", "let me in", "guest")];

/// Number, owner, text.
const REPORTS: [(u32, &str, &str); 3] =
    [(7, "ann", "All is well"), (8, "ben", "It rains"), (9, "ann", "All is still well")];

const COOKIE: &str = "session";
const SESSION: Duration = Duration::from_secs(8 * 3600);
/// Beyond it, nobody else signs in until a session ends.
const SESSIONS_MAX: usize = 10_000;

#[derive(Parser)]
struct Arguments {
    /// The configuration.
    #[arg(long, default_value = "config.toml")]
    config: PathBuf,
    /// Port to listen at, in place of the configured one.
    #[arg(long)]
    port: Option<u16>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let Arguments { config, port } = Arguments::parse();
    let sessions = Sessions::default();
    let (entering, leaving) = (sessions.clone(), sessions.clone());
    Greenroom::from_config(config)?
        .configure(|config| config.server.port = port.unwrap_or(config.server.port))
        .auth(sessions)
        .routes(|routes| {
            let login = move |who: web::Json<Credentials>| ready(entering.login(&who));
            routes.post("/login", login).summary("Sign in with user and password");
            let logout = move |request: HttpRequest| ready(leaving.logout(&request));
            routes.post("/logout", logout).summary("End the session");
            routes.get("/me", me).summary("Show who is signed in");
            routes.get("/reports/:id", report).summary("Show a report of one's own");
        })
        .model("clerk", Arc::new(clerk()?))
        .tool(
            "my_reports",
            "Lists the reports of whoever asks",
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

/// Who is signed in, by the value of the cookie.
#[derive(Clone, Default)]
struct Sessions(Arc<Mutex<HashMap<String, User>>>);

#[derive(Deserialize)]
struct Credentials {
    user: String,
    password: String,
}

impl Sessions {
    fn login(&self, who: &Credentials) -> Result<HttpResponse, actix_web::Error> {
        let known = PEOPLE.iter().find(|(name, password, _)| {
            (*name, *password) == (who.user.as_str(), who.password.as_str())
        });
        // The same words for both mistakes: nobody learns who has an account.
        let Some((name, _, role)) = known else {
            return Err(ErrorUnauthorized("Wrong user or password"));
        };
        let now = SystemClock.now();
        let ends_at = now.plus_ms(u64::try_from(SESSION.as_millis()).unwrap_or(u64::MAX));
        let user = user(name, role).map_err(ApiError::from)?.until(Some(ends_at));
        // 122 random bits, which nobody guesses.
        let id = Uuid::new_v4().simple().to_string();
        let mut open = self.open();
        open.retain(|_, user| !is_over(user, now));
        if open.len() >= SESSIONS_MAX {
            return Err(ApiError::Busy { execution: None }.into());
        }
        open.insert(id.clone(), user);
        let seconds = SESSION.as_secs();
        // `Secure` belongs here as well where the server is reached by HTTPS.
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
        // Nothing is half done between two changes of the map.
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
            Some(user) if is_over(&user, SystemClock.now()) => Err(AuthError::Expired),
            Some(user) => Ok(user),
            None => Err(AuthError::invalid("no such session")),
        };
        ready(verdict).boxed()
    }

    fn public_routes(&self) -> Vec<String> {
        vec!["POST /login".to_owned()]
    }
}

/// What routes, agents and tools know of somebody.
fn user(name: &str, role: &str) -> Result<User, AuthError> {
    let profile: [(_, Value); 2] = [("id", name.into()), ("roles", json!([role]))];
    User::new(Map::from_iter(profile.map(|(key, value)| (key.to_owned(), value))))
}

fn is_over(user: &User, now: Timestamp) -> bool {
    user.expires_at().is_some_and(|end| end <= now)
}

/// `GET /me`.
async fn me(Authenticated(user): Authenticated) -> web::Json<Map<String, Value>> {
    ready(web::Json(user.profile().clone())).await
}

/// `GET /reports/:id`. A report of somebody else is as good as none.
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

/// The tool; who asks is in its context, wherever the call comes from.
async fn my_reports(_: Value, context: ToolContext) -> Result<Value, ToolError> {
    let user = context.user_id.ok_or("nobody asks")?;
    let own = REPORTS.iter().filter(|(_, owner, _)| *owner == &*user);
    Ok(own.map(|(number, ..)| *number).collect())
}

/// In place of a model: asks the tool and says what it gave.
fn clerk() -> Result<MockModel, String> {
    let told = "Your reports: {{ tool_results[0].output }}".to_owned();
    let rule = |when: &str, action| MockRule {
        when: Some(when.to_owned()),
        delay: Duration::ZERO,
        action,
    };
    let call = MockAction::ToolCalls(vec![("my_reports".to_owned(), Projection(json!({})))]);
    let rules = vec![rule("tool_results", MockAction::Reply(told)), rule("tools", call)];
    MockModel::new(MockConfig { pace: Duration::ZERO, rules })
        .map_err(|problems| problems.join("; "))
}
