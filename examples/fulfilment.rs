//! An order becomes parcels. For each item, two at a time, the workflow orders a parcel from a
//! warehouse over HTTP and polls until it is packed; large quantities need a person's decision
//! first. Then a crane loads all parcels; it reports progress and can be cancelled.
//!
//! ```text
//! cargo run --example fulfilment
//! ```
//!
//! It runs with `config.toml`, including its workflows and agents; `--config FILE` names another
//! file. The warehouse is a second server in this program, on a free port. `stream` shows every
//! step as it happens, and the progress of the crane (`step-progress`):
//!
//! ```text
//! curl -N localhost:3141/workflows/fulfil/stream -H 'content-type: application/json' \
//!     -d '{"input": {"items": [{"sku": "lamp", "count": 2}, {"sku": "sofa", "count": 1}]}}'
//! ```
//!
//! For more than 20 of an item, the function `allot` suspends. `why` shows what the execution waits
//! for and how to resume it. The lamps are packed at the same time: while another step runs, a
//! resume must name the suspended one:
//!
//! ```text
//! W=localhost:3141/workflows/fulfil J='content-type: application/json'
//! curl $W/execute -H "$J" -d '{"input": {"items": [{"sku": "lamp", "count": 2},
//!     {"sku": "sofa", "count": 90}]}, "options": {"executionId": "sofas"}}'
//! curl $W/executions/sofas/why
//! curl $W/executions/sofas/resume -H "$J" -d '{"resumeData": {"count": 9},
//!     "options": {"stepId": "allot"}}'
//! ```
//!
//! The first of these loads again, in a new execution with the parcels of the old one. The others
//! cancel an execution while its crane runs:
//!
//! ```text
//! curl $W/executions/sofas/replay -H "$J" -d '{"stepId": "load"}'
//! curl $W/execute -H "$J" -d '{"input": {"items": [{"sku": "nail", "count": 21}]},
//!     "options": {"executionId": "nails"}}'
//! curl $W/executions/nails/resume -H "$J" -d '{"resumeData": {"count": 1000000}}' &
//! curl $W/executions/nails/cancel -H "$J" -d '{"reason": "the ship has left"}'
//! ```

#[path = "support/arguments.rs"]
mod arguments;

use std::collections::HashMap;
use std::error::Error;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use greenroom::actix_web::{App, HttpRequest, HttpResponse, HttpServer, rt, web};
use greenroom::builder::{Block, Http, Retry, Step, Workflow, http, run};
use greenroom::step::{StepContext, StepError, StepOutcome};
use serde::Deserialize;
use serde_json::{Value, json};

/// Time in which the crane loads one item.
const LIFT: Duration = Duration::from_millis(20);

fn main() -> Result<(), Box<dyn Error>> {
    let warehouse = open_warehouse()?;
    arguments::greenroom()?
        .function("allot", allot)
        .blocking_function("load", load)
        .workflow(fulfil(warehouse))
        .serve()?;
    Ok(())
}

fn fulfil(warehouse: SocketAddr) -> Workflow {
    let parcels = format!("http://{warehouse}/parcels");
    let retry = || Retry::attempts(5).delay(Duration::from_millis(100)).jitter();

    // `item` is the item in every step of the block, `data` the output of the previous step
    let ask = Block::new("ask").step(Step::run("allot", "allot").resume_schema(json!({
        "type": "object", "required": ["count"],
        "properties": { "count": { "type": "integer", "minimum": 1 } } })));
    // each attempt has the same Idempotency-Key: a parcel is never ordered twice
    let order = Http::post(&parcels).body(json!({ "sku": "data.sku", "count": "data.count" }));
    let look = Block::new("look")
        .step(Step::sleep("pause", Duration::from_millis(50)))
        .step(Step::then("status", http(Http::get(&parcels).query("id", json!("data.id")))));
    let parcel = Block::new("parcel")
        .step(Step::branch("much", [("item.count > 20", ask)]))
        .step(Step::then("order", http(order)).retry(retry()).timeout(Duration::from_secs(5)))
        .step(Step::do_until("packed", look, "data.state == 'packed'", 100))
        .step(Step::map("ready", json!({ "sku": "item.sku", "count": "steps.order.count" })));

    Workflow::new("fulfil")
        .name("Fulfilment")
        .purpose("Has the items of an order packed, and loads them")
        .retention(Duration::from_secs(90 * 24 * 3600))
        .input_schema(json!({ "type": "object", "required": ["items"], "properties": {
            "items": { "type": "array", "minItems": 1, "maxItems": 100, "items": {
                "type": "object", "required": ["sku", "count"],
                "properties": { "sku": { "type": "string" },
                    "count": { "type": "integer", "minimum": 1 } } } } } }))
        .step(Step::for_each("parcels", json!("input.items"), parcel).concurrency(2))
        .then("load", run("load"))
        .result(json!({ "parcels": "steps.parcels", "loaded": "data.loaded" }))
}

#[derive(Deserialize)]
struct Parcel {
    sku: String,
    count: u32,
}

#[derive(Deserialize)]
struct Allotment {
    count: u32,
}

/// Suspends from code. The function is called again after the resume, even days and restarts later.
async fn allot(step: StepContext) -> Result<StepOutcome, StepError> {
    let Parcel { sku, count } = step.data_as()?;
    Ok(match step.resume_as::<Allotment>()? {
        Some(Allotment { count }) => json!({ "sku": sku, "count": count }).into(),
        None => StepOutcome::suspended(format!("{count} x {sku}: how many may go?"))
            .showing(json!({ "sku": sku, "wanted": count })),
    })
}

/// Runs on a thread for blocking work. A cancel does not stop it, but fires `cancellation`.
fn load(step: &StepContext) -> Result<StepOutcome, StepError> {
    let parcels: Vec<Parcel> = step.data_as()?;
    let total = parcels.iter().map(|parcel| parcel.count).sum();
    Ok(json!({ "loaded": lift(step, total) }).into())
}

fn lift(step: &StepContext, total: u32) -> u32 {
    for loaded in 0..total {
        if step.cancellation.is_cancelled() {
            log::warn!("{}: the crane stopped at {loaded} of {total}", step.execution_id);
            return loaded;
        }
        thread::sleep(LIFT);
        step.progress(json!({ "loaded": loaded + 1, "of": total }));
    }
    total
}

/// Number of status requests for each parcel that is not packed yet.
type Packing = Mutex<HashMap<String, u32>>;

/// Starts a mock of an external service, which takes orders and packs them after a while.
fn open_warehouse() -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let packing = web::Data::new(Packing::default());
    let app = move || {
        let parcels = web::resource("/parcels").post(take_order).get(status);
        App::new().app_data(web::Data::clone(&packing)).service(parcels)
    };
    thread::spawn(move || {
        rt::System::new().block_on(async move {
            HttpServer::new(app).workers(1).disable_signals().listen(listener)?.run().await
        })
    });
    Ok(address)
}

/// Names the parcel by the key: a repeated order with the same key gets the same parcel.
async fn take_order(request: HttpRequest, order: web::Json<Value>) -> HttpResponse {
    let key = request.headers().get("idempotency-key").and_then(|key| key.to_str().ok());
    let Some(id) = key else { return HttpResponse::BadRequest().body("no Idempotency-Key") };
    HttpResponse::Ok().json(json!({ "id": id, "count": order["count"] }))
}

async fn status(
    query: web::Query<HashMap<String, String>>,
    all: web::Data<Packing>,
) -> HttpResponse {
    let Some(id) = query.get("id") else { return HttpResponse::BadRequest().body("which parcel?") };
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    let times = all.entry(id.clone()).or_default();
    *times += 1;
    let state = if *times < 3 { "packing" } else { "packed" };
    if state == "packed" {
        all.remove(id);
    }
    HttpResponse::Ok().json(json!({ "id": id, "state": state }))
}
