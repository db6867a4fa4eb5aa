//! An axum application with a server in it: a request starts a workflow and is answered at once, and
//! another one returns its result. The API and the console of the server are at its own address.
//!
//! ```text
//! cargo run --example beside_axum
//! curl -X POST localhost:8080/orders -H 'content-type: application/json' -d '{"item": "lamp"}'
//! curl localhost:8080/orders/ID
//! ```

use std::error::Error;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use greenroom::config::StoreUrl;
use greenroom::prelude::*;
use serde_json::{Value, json};
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = server().start().await?;
    log::info!("the server's own API: http://{}", server.handle().address());
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    axum::serve(listener, application(server.handle())).await?;
    Ok(server.stop().await?)
}

fn server() -> Greenroom {
    let order = Workflow::new("order")
        .input_schema(json!({ "type": "object", "required": ["item"] }))
        .step(Step::map("parcel", json!({ "parcel": "'one ' ~ input.item" })));
    Greenroom::new()
        .configure(|config| {
            config.server.port = 0;
            config.store.url = StoreUrl::Memory;
        })
        .workflow(order)
}

fn application(server: Handle) -> Router {
    Router::new().route("/orders", post(take)).route("/orders/{id}", get(show)).with_state(server)
}

/// Starts the workflow. It continues whether or not anybody asks for it.
async fn take(
    State(server): State<Handle>,
    Json(order): Json<Value>,
) -> Result<(StatusCode, Json<Value>), (StatusCode, String)> {
    let run = server.start("order", &order).await;
    let run = run.map_err(|refusal| (StatusCode::BAD_REQUEST, refusal.to_string()))?;
    Ok((StatusCode::ACCEPTED, Json(json!({ "id": run.id().as_str() }))))
}

/// Waits for the result.
async fn show(
    State(server): State<Handle>,
    Path(id): Path<String>,
) -> Result<Json<Value>, (StatusCode, String)> {
    let result = server.run("order", &id).result().await;
    result.map(Json).map_err(|why| (StatusCode::NOT_FOUND, why.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_starts_a_workflow() {
        let server = server().start().await.unwrap();
        let application = application(server.handle());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/orders", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, application).await });

        let client = reqwest::Client::new();
        let post = |body: &'static str| {
            let request = client.post(&url).header("content-type", "application/json");
            request.body(body).send()
        };
        let taken = post(r#"{"item": "lamp"}"#).await.unwrap();
        assert_eq!(taken.status(), 202);
        let taken: Value = serde_json::from_slice(&taken.bytes().await.unwrap()).unwrap();
        let id = taken["id"].as_str().unwrap();
        let shown = client.get(format!("{url}/{id}")).send().await.unwrap();
        let shown: Value = serde_json::from_slice(&shown.bytes().await.unwrap()).unwrap();
        assert_eq!(shown, json!({ "parcel": "one lamp" }));
        assert_eq!(post("{}").await.unwrap().status(), 400);
        assert_eq!(client.get(format!("{url}/none")).send().await.unwrap().status(), 404);
        server.stop().await.unwrap();
    }
}
