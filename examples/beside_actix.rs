//! An actix-web application with a server in it: a request runs a workflow and is answered with its
//! result. The API and the console of the server are at its own address.
//!
//! ```text
//! cargo run --example beside_actix
//! curl -X POST localhost:8080/orders -H 'content-type: application/json' -d '{"item": "lamp"}'
//! ```

use std::error::Error;

use greenroom::actix_web::web::{Data, Json, ServiceConfig, post};
use greenroom::actix_web::{App, HttpResponse, HttpServer, main};
use greenroom::config::StoreUrl;
use greenroom::prelude::{Greenroom, Handle, Step, Workflow};
use serde_json::{Value, json};

#[main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = server().start().await?;
    log::info!("the server's own API: http://{}", server.handle().address());
    let handle = Data::new(server.handle());
    let application = move || App::new().app_data(Data::clone(&handle)).configure(orders);
    HttpServer::new(application).workers(1).bind("127.0.0.1:8080")?.run().await?;
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

fn orders(routes: &mut ServiceConfig) {
    routes.route("/orders", post().to(take));
}

async fn take(server: Data<Handle>, order: Json<Value>) -> HttpResponse {
    let run = match server.start("order", &*order).await {
        Ok(run) => run,
        Err(refusal) => return HttpResponse::BadRequest().body(refusal.to_string()),
    };
    match run.result().await {
        Ok(result) => HttpResponse::Ok().json(result),
        Err(failure) => HttpResponse::InternalServerError().body(failure.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use greenroom::actix_web::test::{TestRequest, call_service, init_service, read_body_json};

    use super::*;

    #[greenroom::actix_web::test]
    async fn a_request_runs_a_workflow() {
        let server = server().start().await.unwrap();
        let handle = Data::new(server.handle());
        let application = init_service(App::new().app_data(handle).configure(orders)).await;
        let post = |order: Value| TestRequest::post().uri("/orders").set_json(order).to_request();
        let answer = call_service(&application, post(json!({ "item": "lamp" }))).await;
        let result: Value = read_body_json(answer).await;
        assert_eq!(result, json!({ "parcel": "one lamp" }));
        let refused = call_service(&application, post(json!({}))).await;
        assert_eq!(refused.status(), 400);
        server.stop().await.unwrap();
    }
}
