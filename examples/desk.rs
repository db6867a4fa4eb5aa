//! An agent with tools in Rust: what it may do depends on who asks, and hooks follow it.
//!
//! ```text
//! cargo run --example desk
//! ```
//!
//! It serves on `config.toml`, whose workflows and agents are there too; `--config FILE` names
//! another one. Its model rehearses, so that it needs no network; a real one is a name in
//! `[models.*]` away. Anybody may ask for an order:
//!
//! ```text
//! curl localhost:3141/agents/desk/text -H 'content-type: application/json' \
//!     -d '{"input": "where is order 7"}'
//! ```
//!
//! Staff may give money back, but not much of it:
//!
//! ```text
//! curl localhost:3141/agents/desk/text -H 'content-type: application/json' \
//!     -d '{"input": "refund 20", "options": {"context": {"role": "staff"}}}'
//! curl localhost:3141/agents/desk/text -H 'content-type: application/json' \
//!     -d '{"input": "refund 2000", "options": {"context": {"role": "staff"}}}'
//! ```

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use futures_util::future::{BoxFuture, FutureExt as _, ready};
use greenroom::Greenroom;
use greenroom::adapters::mock::{MockAction, MockConfig, MockModel, MockRule};
use greenroom::builder::Agent;
use greenroom_actors::agent::tool::{ToolContext, ToolError};
use greenroom_actors::agent::{AgentHooks, RunInfo};
use greenroom_actors::domain::definition::Projection;
use greenroom_actors::domain::message::{ToolCall, ToolResult};
use serde_json::{Map, Value, json};

/// Refunds above it need more than an agent.
const REFUND_MAX: u64 = 100;

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
    let order = json!({ "type": "object", "required": ["order"],
        "properties": { "order": { "type": "string" } } });
    let amount = json!({ "type": "object", "required": ["amount"],
        "properties": { "amount": { "type": "integer", "minimum": 1 } } });
    Greenroom::from_config(config)?
        .configure(|config| config.server.port = port.unwrap_or(config.server.port))
        .model("clerk", Arc::new(clerk()?))
        .tool("order_status", "Tells where an order is", order, order_status)
        // A closure does as well; what it needs of the outside is moved into it.
        .tool("refund", "Gives money back", amount, |arguments, context| async move {
            // the same in every attempt of this call: whoever pays can tell a repetition
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

/// Looks it up; the error is told to the model, which may try otherwise.
async fn order_status(arguments: Value, _: ToolContext) -> Result<Value, ToolError> {
    match arguments["order"].as_str() {
        Some("7") => Ok(json!({ "status": "on its way" })),
        Some(order) => Err(format!("there is no order {order}").into()),
        None => Err("the order is missing".into()),
    }
}

/// Both are asked at the start of each run, with the context that the caller sent.
fn instructions(context: &Map<String, Value>) -> Result<String, String> {
    let whom = if is_staff(context) { "a colleague" } else { "a customer" };
    Ok(format!("You work at the service desk and talk to {whom}."))
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

/// Follows every run, and has the last word on a call.
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

/// In place of a model: asks for the tool that the prompt speaks of and says what it gave.
fn clerk() -> Result<MockModel, String> {
    let rule = |when: &str, action| MockRule {
        when: Some(when.to_owned()),
        delay: Duration::ZERO,
        action,
    };
    let call = |name: &str, arguments| {
        MockAction::ToolCalls(vec![(name.to_owned(), Projection(arguments))])
    };
    let told = "{{ tool_results[0].error | default(tool_results[0].output) }}";
    let rules = vec![
        rule("tool_results", MockAction::Reply(told.to_owned())),
        rule(
            "'order' in prompt",
            call("order_status", json!({ "order": "prompt | split(' ') | list | last" })),
        ),
        rule(
            "'refund' in prompt",
            call("refund", json!({ "amount": "prompt | split(' ') | list | last | int" })),
        ),
    ];
    MockModel::new(MockConfig { pace: Duration::ZERO, rules })
        .map_err(|problems| problems.join("; "))
}
