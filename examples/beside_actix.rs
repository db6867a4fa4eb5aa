//! An actix-web application with a server in it: a request runs a workflow and is answered with its
//! result. The API and the console of the server are at its own address, which it logs. Ctrl-C ends
//! both.
//!
//! ```text
//! cargo run --example beside_actix
//! curl -X POST localhost:8080/orders -H 'content-type: application/json' -d '{"item": "lamp"}'
//! ```

use std::error::Error;
use std::net::TcpListener;

use greenroom::RunError;
use greenroom::actix_web::web::{Data, Json, ServiceConfig, post};
use greenroom::actix_web::{App, HttpResponse, HttpServer, main, rt};
use greenroom::api::ApiError;
use greenroom::config::StoreUrl;
use greenroom::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:8080")?;
    let server = server().start().await?;
    serve(server, listener, async { drop(rt::signal::ctrl_c().await) }).await
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
    listener: TcpListener,
    stop: impl Future<Output = ()>,
) -> Result<(), Box<dyn Error>> {
    let handle = Data::new(server.handle());
    let application = move || App::new().app_data(Data::clone(&handle)).configure(orders);
    let http = HttpServer::new(application).workers(1).disable_signals().listen(listener)?.run();
    let door = http.handle();
    let http = rt::spawn(http);
    tokio::select! {
        () = stop => {}
        ended = server.ended() => return Ok(ended?),
    }
    // at once: the server ends requests that wait for a result, and the application waits for them
    let ((), stopped) = tokio::join!(door.stop(true), server.stop());
    stopped?;
    Ok(http.await??)
}

fn orders(routes: &mut ServiceConfig) {
    routes.route("/orders", post().to(take));
}

/// Refusals have the statuses and the form of the server's own API: 400, 404, 409, 503.
async fn take(server: Data<Handle>, order: Json<Value>) -> Result<HttpResponse, ApiError> {
    let run = server.start("order", &*order).await?;
    Ok(match run.result().await {
        Ok(parcel) => HttpResponse::Ok().json(parcel),
        // the store or the server is not available
        Err(RunError::Unknown(error)) => return Err(ApiError::from_describe(run.id(), error)),
        Err(RunError::Cancelled(_)) => HttpResponse::Conflict().body("the order was cancelled"),
        Err(failure) => HttpResponse::InternalServerError().body(failure.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use greenroom::actix_web::body::to_bytes;
    use greenroom::actix_web::test::{TestRequest, call_service, init_service};
    use greenroom::store::AskFilter;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::sync::oneshot;

    use super::*;

    #[greenroom::actix_web::test]
    async fn each_end_has_its_status() {
        let server = server().start().await.unwrap();
        let handle = Data::new(server.handle());
        let application = init_service(App::new().app_data(handle).configure(orders)).await;
        let rows = [
            (json!({ "item": "lamp" }), 200, r#"{"parcel":"one lamp"}"#),
            (json!({ "item": "anvil" }), 500, "an anvil is too heavy"),
            (json!({}), 400, "Input validation failed: item: missing"),
        ];
        for (order, status, text) in rows {
            let request = TestRequest::post().uri("/orders").set_json(order).to_request();
            let answer = call_service(&application, request).await;
            assert_eq!(answer.status(), status);
            let body = to_bytes(answer.into_body()).await.unwrap();
            assert!(String::from_utf8_lossy(&body).contains(text), "{text}: {body:?}");
        }
        server.stop().await.unwrap();
    }

    /// A request that waits for a result does not hold the end up.
    #[greenroom::actix_web::test]
    async fn a_stop_answers_requests_that_wait() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let server = server().start().await.unwrap();
        let (handle, (stop, stopped)) = (server.handle(), oneshot::channel::<()>());
        let serving = serve(server, listener, async { drop(stopped.await) });
        let order = r#"{"item": "ship"}"#;
        let head = "POST /orders HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
                    connection: close\r\ncontent-length:";
        let asking = async {
            client
                .write_all(format!("{head} {}\r\n\r\n{order}", order.len()).as_bytes())
                .await
                .unwrap();
            let open = AskFilter { is_open: true, ..AskFilter::default() };
            while handle.runtime().inbox(&open, None, 1).await.unwrap().asks.is_empty() {
                tokio::task::yield_now().await;
            }
            stop.send(()).unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let (served, answer) = tokio::join!(serving, asking);
        served.unwrap();
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    }
}
