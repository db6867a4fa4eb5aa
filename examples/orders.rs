//! A workflow with Rust functions: an order is priced, waits for a person when it is expensive,
//! is paid with retries, and is sent.
//!
//! ```text
//! cargo run --example orders
//! ```
//!
//! It serves on `config.toml`, whose workflows and agents are there too; `--config FILE` names
//! another one. A small order goes through at once:
//!
//! ```text
//! curl localhost:3141/workflows/order/execute -H 'content-type: application/json' \
//!     -d '{"input": {"item": "lamp", "quantity": 2}}'
//! ```
//!
//! A large one suspends, for as long as it takes and over restarts of the server:
//!
//! ```text
//! curl localhost:3141/workflows/order/execute -H 'content-type: application/json' \
//!     -d '{"input": {"item": "sofa", "quantity": 3}, "options": {"executionId": "sofas"}}'
//! curl localhost:3141/workflows/order/executions/sofas/resume \
//!     -H 'content-type: application/json' -d '{"resumeData": {"approved": true}}'
//! ```
//!
//! Where somebody may click twice, the answer names the suspension that was seen (`suspension.id` of
//! what `execute`, `state`, lists and `why` show): `"options": {"suspensionId": "..."}`.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use greenroom::Greenroom;
use greenroom::builder::{Retry, Step, Suspend, Workflow};
use greenroom_actors::function::{StepContext, StepError, StepOutcome};
use serde_json::json;

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
    Greenroom::from_config(config)?
        .configure(|config| config.server.port = port.unwrap_or(config.server.port))
        .function("price", price)
        .function("pay", pay)
        .workflow(order())
        .serve()?;
    Ok(())
}

/// Expressions see the output of the step before as `data`, of any step as `steps.<id>`, and
/// what the execution was started with as `input`.
fn order() -> Workflow {
    let approval = Suspend::when("data.total > 1000")
        .reason("{{ input.quantity }} x {{ input.item }} for {{ data.total }}")
        .payload(json!({ "total": "data.total" }))
        .deadline(Duration::from_secs(48 * 3600))
        .on_timeout_resume(json!({ "approved": false }));
    let answer = json!({ "type": "object", "required": ["approved"],
        "properties": { "approved": { "type": "boolean" } } });

    Workflow::new("order")
        .name("Order")
        .purpose("Prices, approves, pays and sends an order")
        .input_schema(json!({ "type": "object", "required": ["item", "quantity"],
            "properties": { "item": { "type": "string" },
                "quantity": { "type": "integer", "minimum": 1 } } }))
        .step(Step::run("price", "price"))
        // Suspends before the body when the expression holds; the answer is `resume` then.
        .step(
            Step::map(
                "approve",
                json!({ "approved": "resume.approved if resume is not none else true" }),
            )
            .suspend(approval)
            .resume_schema(answer),
        )
        .step(
            Step::run("pay", "pay")
                .retry(Retry::attempts(3).delay(Duration::from_millis(200)).factor(2.0))
                .timeout(Duration::from_secs(5)),
        )
        .result(json!({ "status": "data.status", "total": "steps.price.total",
            "receipt": "data.receipt" }))
}

/// Fails, for good or until the next attempt, with any text.
async fn price(step: StepContext) -> Result<StepOutcome, StepError> {
    let item = step.input["item"].as_str().ok_or("the item is missing")?;
    let quantity = step.input["quantity"].as_u64().ok_or("the quantity is missing")?;
    let each = match item {
        "lamp" => 40,
        "sofa" => 900,
        other => return Err(format!("{other} is not for sale").into()),
    };
    Ok(json!({ "total": each * quantity }).into())
}

/// A finished step never runs again. One that a crash interrupts does: the key is then the same,
/// and whoever takes the money can tell that this is the same payment.
async fn pay(step: StepContext) -> Result<StepOutcome, StepError> {
    if step.data["approved"] != true {
        return Ok(json!({ "status": "refused", "receipt": null }).into());
    }
    if step.attempt == 1 && step.input["item"] == "sofa" {
        return Err("the bank does not answer".into());
    }
    // the record carries the ids of the execution: /api/logs?executionId=... finds it
    log::info!(attempt = step.attempt; "paying {}", step.idempotency_key);
    let receipt = format!("receipt for {}", step.idempotency_key);
    Ok(json!({ "status": "paid", "receipt": receipt }).into())
}
