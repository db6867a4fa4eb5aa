//! An agent with tools in Rust. Its instructions and tools depend on the caller; hooks observe and
//! veto tool calls.
//!
//! ```text
//! cargo run --example desk
//! ```
//!
//! It runs with `config.toml`, including its workflows and agents; `--config FILE` names another
//! file. Its model is a mock, which needs no network; for a real one, name a model of `[models.*]`.
//! Any caller may ask for an order:
//!
//! ```text
//! curl localhost:3141/agents/desk/text -H 'content-type: application/json' \
//!     -d '{"input": "where is order 7"}'
//! ```
//!
//! Staff may refund money, up to a limit:
//!
//! ```text
//! curl localhost:3141/agents/desk/text -H 'content-type: application/json' \
//!     -d '{"input": "refund 20", "options": {"context": {"role": "staff"}}}'
//! curl localhost:3141/agents/desk/text -H 'content-type: application/json' \
//!     -d '{"input": "refund 2000", "options": {"context": {"role": "staff"}}}'
//! ```

#[path = "support/arguments.rs"]
mod arguments;

use std::error::Error;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use greenroom::adapters::mock::{MockConfig, MockModel, MockRule};
use greenroom::agent::{AgentHooks, RunInfo, ToolCall, ToolResult};
use greenroom::builder::Agent;
use greenroom::schemars::{self, JsonSchema};
use greenroom::tool::ToolError;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Largest refund that an agent may make.
const REFUND_MAX: u64 = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let amount = json!({ "type": "object", "required": ["amount"],
        "properties": { "amount": { "type": "integer", "minimum": 1 } } });
    arguments::greenroom()?
        .model("clerk", Arc::new(clerk()?))
        .typed_tool("order_status", "Looks up the status of an order", order_status)
        // a schema and a closure over JSON work as well
        .tool("refund", "Refunds money", amount, |arguments, context| async move {
            // the same in every attempt of this call, so that a repeated payment is recognized
            let receipt = context.idempotency_key;
            Ok(json!({ "paid": arguments["amount"], "receipt": receipt }))
        })
        .agent(
            Agent::new("desk")
                .name("Service desk")
                .description("Answers questions about orders")
                .instructions_with(instructions)
                .model("clerk")
                .tools_with(tools)
                .max_steps(4)
                .hooks(Supervision),
        )
        .serve()?;
    Ok(())
}

/// Arguments of a tool. The model gets its schema, comments of fields included.
#[derive(Deserialize, JsonSchema)]
struct Order {
    /// Number of the order
    order: String,
}

/// Looks an order up. The model gets the error and may react to it.
async fn order_status(Order { order }: Order) -> Result<Value, ToolError> {
    match order.as_str() {
        "7" => Ok(json!({ "status": "on its way" })),
        order => Err(format!("there is no order {order}").into()),
    }
}

/// Called like [`tools`] at the start of each generation, with the context from the caller.
fn instructions(context: &Map<String, Value>) -> Result<String, String> {
    let caller = if is_staff(context) { "a colleague" } else { "a customer" };
    Ok(format!("You work at the service desk and talk to {caller}."))
}

fn tools(context: &Map<String, Value>) -> Result<Vec<String>, String> {
    let mut tools = vec!["order_status".to_owned()];
    if is_staff(context) {
        tools.push("refund".to_owned());
    }
    Ok(tools)
}

fn is_staff(context: &Map<String, Value>) -> bool {
    context.get("role").is_some_and(|role| role == "staff")
}

/// Vetoes large refunds, and logs the results of tools.
struct Supervision;

impl AgentHooks for Supervision {
    fn on_tool_start<'a>(
        &'a self,
        _: &'a RunInfo,
        call: &'a ToolCall,
    ) -> BoxFuture<'a, Result<(), String>> {
        let is_too_much = call.tool_name == "refund"
            && call.input["amount"].as_u64().is_none_or(|amount| amount > REFUND_MAX);
        let verdict = if is_too_much { Err("ask your manager".to_owned()) } else { Ok(()) };
        ready(verdict).boxed()
    }

    fn on_tool_end<'a>(&'a self, run: &'a RunInfo, result: &'a ToolResult) -> BoxFuture<'a, ()> {
        let (tool, outcome) = (&result.tool_name, &result.outcome);
        log::info!("generation {}: {tool} gave {outcome:?}", run.generation_id);
        ready(()).boxed()
    }
}

/// Makes a mock model that calls the tool named in the prompt and answers with its result.
fn clerk() -> Result<MockModel, greenroom::Problems> {
    let last = "prompt | split(' ') | list | last";
    let rules = vec![
        MockRule::reply("{{ tool_results[0].error | default(tool_results[0].output) }}")
            .when("tool_results"),
        MockRule::call("order_status", json!({ "order": last })).when("'order' in prompt"),
        MockRule::call("refund", json!({ "amount": format!("{last} | int") }))
            .when("'refund' in prompt"),
    ];
    MockModel::new(MockConfig { rules, ..MockConfig::default() })
}
