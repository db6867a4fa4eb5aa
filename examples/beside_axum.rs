//! An axum application with a server in it: a request starts a workflow and is answered at once, and
//! another one returns its result. The API and the console of the server are at its own address, which
//! it logs. Ctrl-C ends both.
//!
//! ```text
//! cargo run --example beside_axum
//! curl -X POST localhost:8080/orders -H 'content-type: application/json' -d '{"item": "lamp"}'
//! curl localhost:8080/orders/ID
//! ```

use std::error::Error;
use std::future::IntoFuture;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use greenroom::RunError;
use greenroom::api::ApiError;
use greenroom::config::StoreUrl;
use greenroom::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::signal;
use tokio::sync::oneshot;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    let server = server().start().await?;
    let application = application(server.handle());
    serve(server, (listener, application), async { drop(signal::ctrl_c().await) }).await
}

#[derive(Serialize, Deserialize)]
struct Order {
    item: String,
}

#[derive(Serialize)]
struct Parcel {
    parcel: String,
}

async fn pack(order: Order) -> Result<Parcel, StepError> {
    match order.item.as_str() {
        "anvil" => Err(StepError::terminal("an anvil is too heavy")),
        item => Ok(Parcel { parcel: format!("one {item}") }),
    }
}

fn server() -> Greenroom {
    let approval = Suspend::when("input.item == 'ship'").reason("A ship has to be approved");
    let order = Workflow::new("order")
        .input_schema(json!({ "type": "object", "required": ["item"] }))
        .step(Step::call("pack", pack).suspend(approval));
    Greenroom::new()
        .configure(|config| {
            config.server.port = 0;
            config.store.url = StoreUrl::Memory;
        })
        .workflow(order)
}

/// Serves until `stop`, or until the server has ended by itself.
async fn serve(
    mut server: Server,
    (listener, application): (TcpListener, Router),
    stop: impl Future<Output = ()>,
) -> Result<(), Box<dyn Error>> {
    let (close, closed) = oneshot::channel::<()>();
    let http = axum::serve(listener, application);
    // dropping `close` is the signal
    let http = http.with_graceful_shutdown(async { drop(closed.await) });
    let http = tokio::spawn(http.into_future());
    tokio::select! {
        () = stop => {}
        ended = server.ended() => return Ok(ended?),
    }
    drop(close);
    // it ends requests that wait for a result, so that the application can end after it
    server.stop().await?;
    Ok(http.await??)
}

fn application(server: Handle) -> Router {
    Router::new().route("/orders", post(take)).route("/orders/{id}", get(show)).with_state(server)
}

type Refusal = (StatusCode, String);

/// Starts the workflow. It continues whether or not a client asks for it.
async fn take(
    State(server): State<Handle>,
    Json(order): Json<Value>,
) -> Result<(StatusCode, Json<Value>), Refusal> {
    let run = server.start("order", &order).await;
    let run = run.map_err(|refusal| refused(&refusal.into()))?;
    Ok((StatusCode::ACCEPTED, Json(json!({ "id": run.id().as_str() }))))
}

/// Waits for the result.
async fn show(
    State(server): State<Handle>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let run = server.run("order", &id);
    run.result().await.map(Json).map_err(|why| match why {
        // no execution has this id, or the store or the server is not available
        RunError::Unknown(error) => refused(&ApiError::from_describe(run.id(), error)),
        RunError::Cancelled(_) => (StatusCode::CONFLICT, why.to_string()),
        failure => (StatusCode::INTERNAL_SERVER_ERROR, failure.to_string()),
    })
}

/// Answers with the status that the server's own API has for it: 400, 404, 409, 503.
fn refused(refusal: &ApiError) -> Refusal {
    let status = StatusCode::from_u16(refusal.status());
    (status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), refusal.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::extract::Request;
    use axum::middleware::{self, Next};
    use reqwest::{Client, Response};
    use tokio::sync::Notify;

    use super::*;

    /// A started application, and what stops it.
    struct Site {
        url: String,
        stop: Arc<Notify>,
        /// Notified of each request that the application has received.
        received: Arc<Notify>,
        handle: Handle,
        served: tokio::task::JoinHandle<Result<(), String>>,
    }

    impl Site {
        async fn start() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/orders", listener.local_addr().unwrap());
            let server = server().start().await.unwrap();
            let (handle, stop) = (server.handle(), Arc::new(Notify::new()));
            let (stopped, received) = (Arc::clone(&stop), Arc::new(Notify::new()));
            let noting = middleware::from_fn_with_state(Arc::clone(&received), note);
            let application = application(server.handle()).layer(noting);
            let served = tokio::spawn(async move {
                let served = serve(server, (listener, application), stopped.notified()).await;
                served.map_err(|error| error.to_string())
            });
            Self { url, stop, received, handle, served }
        }

        async fn take(&self, order: &'static str) -> Response {
            let request = Client::new().post(&self.url).header("content-type", "application/json");
            request.body(order).send().await.unwrap()
        }

        async fn show(&self, id: &str) -> (u16, String) {
            let shown = Client::new().get(format!("{}/{id}", self.url)).send().await.unwrap();
            (shown.status().as_u16(), shown.text().await.unwrap())
        }
    }

    async fn note(
        State(received): State<Arc<Notify>>,
        request: Request,
        next: Next,
    ) -> axum::response::Response {
        received.notify_one();
        next.run(request).await
    }

    async fn id_of(taken: Response) -> String {
        assert_eq!(taken.status(), 202);
        let taken: Value = serde_json::from_slice(&taken.bytes().await.unwrap()).unwrap();
        taken["id"].as_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn each_end_has_its_status() {
        let site = Site::start().await;
        let lamp = id_of(site.take(r#"{"item": "lamp"}"#).await).await;
        assert_eq!(site.show(&lamp).await, (200, r#"{"parcel":"one lamp"}"#.to_owned()));
        let anvil = id_of(site.take(r#"{"item": "anvil"}"#).await).await;
        assert_eq!(site.show(&anvil).await, (500, "an anvil is too heavy".to_owned()));
        let ship = id_of(site.take(r#"{"item": "ship"}"#).await).await;
        site.handle.run("order", &ship).cancel(None).await.unwrap();
        assert_eq!(site.show(&ship).await.0, 409);
        assert_eq!(site.take("{}").await.status(), 400);
        assert_eq!(site.show("none").await, (404, "Execution none not found".to_owned()));
        site.stop.notify_one();
        assert_eq!(site.served.await.unwrap(), Ok(()));
    }

    /// A request that waits for a result does not hold the end up.
    #[tokio::test]
    async fn a_stop_answers_requests_that_wait() {
        let site = Site::start().await;
        let ship = id_of(site.take(r#"{"item": "ship"}"#).await).await;
        site.received.notified().await;
        let waiting = site.show(&ship);
        let stop = async {
            // a request that comes later is refused by the closed listener
            site.received.notified().await;
            site.stop.notify_one();
        };
        let ((status, _), ()) = tokio::join!(waiting, stop);
        assert_eq!(status, 503);
        assert_eq!(site.served.await.unwrap(), Ok(()));
    }
}
