//! The tools that MCP's conformance suite calls, in Rust and as workflows, for the server that
//! [`crate::test_server`] starts.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom::builder::{Block, McpFace, Step, Suspend, Tool, Workflow};
use greenroom::tool::{Content, ToolAsk, ToolContext, ToolDefinition, ToolError};
use greenroom::{Greenroom, ServerContext as _};
use greenroom_actors::function::{StepContext, StepError, StepOutcome};
use greenroom_actors::registry::Registry;
use serde_json::{Value, json};

/// Environment variable: the server has these tools.
pub(crate) const FIXTURES: &str = "GREENROOM_TEST_FIXTURES";

/// A picture of one point, and a sound of none.
const PNG: [u8; 67] = [
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0,
    1, 0, 0, 0, 1, 8, 0, 0, 0, 0, 0x3a, 0x7e, 0x9b, 0x55, 0, 0, 0, 10, b'I', b'D', b'A', b'T',
    0x78, 0x9c, 0x63, 0x60, 0, 0, 0, 2, 0, 1, 0x48, 0xaf, 0xa4, 0x71, 0, 0, 0, 0, b'I', b'E', b'N',
    b'D', 0xae, 0x42, 0x60, 0x82,
];
const WAV: &[u8] =
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\0\0\0\0";

/// Registers the tools, and a face that offers them.
pub(crate) fn with_fixtures(greenroom: Greenroom) -> Greenroom {
    let greenroom = greenroom.function("compute", compute).function(
        "fail_late",
        |step: StepContext| async move {
            pause(1000).await;
            drop(step);
            Err::<StepOutcome, _>(StepError::terminal("this job always fails"))
        },
    );
    let greenroom = workflows().into_iter().fold(greenroom, Greenroom::workflow);
    let tools = [at_once(), asking(), of_workflows()].concat();
    let names: Vec<_> = tools.iter().map(|(name, _)| *name).collect();
    let greenroom =
        tools.into_iter().fold(greenroom, |greenroom, (_, tool)| greenroom.define_tool(tool()));
    greenroom.face(McpFace::new().tools(names).resources().task_after(Duration::from_millis(400)))
}

type Named = (&'static str, fn() -> Tool);

fn any() -> Value {
    json!({ "type": "object" })
}

fn answering(name: &str, result: fn() -> Value) -> Tool {
    Tool::function(name, "Answers", any(), move |_, _| async move { Ok(result()) })
}

/// Tools that answer at once.
fn at_once() -> Vec<Named> {
    vec![
        ("test_simple_text", || {
            answering("test_simple_text", || json!("This is a simple text response for testing."))
        }),
        ("test_image_content", || {
            answering("test_image_content", || Content::result([Content::image("image/png", PNG)]))
        }),
        ("test_audio_content", || {
            answering("test_audio_content", || Content::result([Content::audio("audio/wav", WAV)]))
        }),
        ("test_embedded_resource", || {
            answering("test_embedded_resource", || {
                let text = "This is an embedded resource content.";
                Content::result([Content::resource("test://embedded-resource", "text/plain", text)])
            })
        }),
        ("test_multiple_content_types", || {
            answering("test_multiple_content_types", || {
                let (uri, text) =
                    ("test://mixed-content-resource", r#"{"test":"data","value":123}"#);
                Content::result([
                    Content::text("Multiple content types test:"),
                    Content::image("image/png", PNG),
                    Content::resource(uri, "application/json", text),
                ])
            })
        }),
        ("test_error_handling", || {
            Tool::function("test_error_handling", "Fails", any(), |_, _| async {
                Err(ToolError::new("This tool intentionally returns an error for testing"))
            })
        }),
        ("test_logging_tool", || answering("test_logging_tool", || json!("nothing is logged"))),
        ("greet", || {
            let name = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
            Tool::function("greet", "Greets", name, |arguments, _| async move {
                Ok(json!(format!("Hello, {}!", arguments["name"].as_str().unwrap_or("you"))))
            })
        }),
        ("test_trigger_tool_change", || {
            Tool::function(
                "test_trigger_tool_change",
                "Hides a tool, or shows it",
                any(),
                |_, context| async move { toggle(&context).await },
            )
        }),
        (TOGGLED, || answering(TOGGLED, || json!("here"))),
        ("test_headers", || {
            let region = json!({ "type": "object", "properties": {
                "region": { "type": "string", "x-mcp-header": "Region" } } });
            Tool::function("test_headers", "Repeats a region", region, |arguments, _| async move {
                Ok(arguments["region"].clone())
            })
        }),
        ("json_schema_2020_12_tool", || {
            Tool::function("json_schema_2020_12_tool", "Takes much", schema(), |_, _| async {
                Ok(json!("taken"))
            })
        }),
    ]
}

/// Tool that is sometimes there.
const TOGGLED: &str = "test_toggled";

/// Exchanges the registry, as a reload does.
async fn toggle(context: &ToolContext) -> Result<Value, ToolError> {
    static HIDDEN: Mutex<Option<Arc<ToolDefinition>>> = Mutex::new(None);
    let runtime = context.handle()?.runtime().clone();
    let mut registry = Registry::clone(&runtime.registry());
    let hidden = HIDDEN.lock().unwrap().take();
    match hidden {
        Some(tool) => drop(registry.tools.insert(TOGGLED.to_owned(), tool)),
        None => *HIDDEN.lock().unwrap() = registry.tools.remove(TOGGLED),
    }
    runtime.exchange(registry).await.map_err(|why| ToolError::new(why.to_string()))?;
    Ok(json!("changed"))
}

fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
        } },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"],
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

/// Asks for the value of one field.
fn field(
    context: &ToolContext,
    (key, question): (&str, &str),
    name: &str,
    kind: &str,
) -> Result<Value, ToolError> {
    let schema = json!({
        "type": "object", "properties": { name: { "type": kind } }, "required": [name],
    });
    Ok(context.ask(ToolAsk::new(question).key(key).schema(schema))?[name].take())
}

fn asking_name(name: &str) -> Tool {
    Tool::function(name, "Asks for a name", any(), |_, context| async move {
        let name = field(&context, ("user_name", "What is your name?"), "name", "string")?;
        Ok(json!(format!("Hello, {}!", name.as_str().unwrap_or_default())))
    })
}

fn confirming(name: &str) -> Tool {
    Tool::function(name, "Asks for a confirmation", any(), |_, context| async move {
        let ok = field(&context, ("confirm", "Please confirm"), "ok", "boolean")?;
        Ok(json!(format!("state-ok, confirmed: {ok}")))
    })
}

/// Tools that ask a person.
fn asking() -> Vec<Named> {
    vec![
        ("test_elicitation", || asking_name("test_elicitation")),
        ("test_streaming_elicitation", || asking_name("test_streaming_elicitation")),
        ("test_input_required_result_elicitation", || {
            asking_name("test_input_required_result_elicitation")
        }),
        ("test_input_required_result_capabilities", || {
            asking_name("test_input_required_result_capabilities")
        }),
        ("test_input_required_result_request_state", || {
            confirming("test_input_required_result_request_state")
        }),
        ("test_input_required_result_tampered_state", || {
            confirming("test_input_required_result_tampered_state")
        }),
        ("test_input_required_result_multi_round", || {
            let name = "test_input_required_result_multi_round";
            Tool::function(name, "Asks twice", any(), |_, context| async move {
                let name = ("step1", "Step 1: What is your name?");
                let name = field(&context, name, "name", "string")?;
                let color = ("step2", "Step 2: What is your favorite color?");
                let color = field(&context, color, "color", "string")?;
                Ok(json!(format!("{name} likes {color}")))
            })
        }),
    ]
}

/// Tools that run workflows, and become tasks.
fn of_workflows() -> Vec<Named> {
    vec![
        ("test_tool_with_progress", || {
            Tool::workflow("test_tool_with_progress", "Takes steps", "steps")
        }),
        ("slow_compute", || Tool::workflow("slow_compute", "Takes time", "compute")),
        ("confirm_delete", || {
            Tool::workflow("confirm_delete", "Asks before it deletes", "confirm")
        }),
        ("multi_input", || {
            Tool::workflow("multi_input", "Asks two questions at once", "questions")
        }),
        ("failing_job", || Tool::workflow("failing_job", "Fails after a while", "fail")),
    ]
}

fn workflows() -> Vec<Workflow> {
    let suspended = |id: &str, question: &str| {
        let answer = json!({ "type": "object", "required": ["confirm"],
            "properties": { "confirm": { "type": "boolean" } } });
        let step = Step::map(id, json!("resume.confirm"));
        step.suspend(Suspend::always().reason(question)).resume_schema(answer)
    };
    let nap = |id: &str| Step::sleep(id, Duration::from_millis(50));
    let both = [
        Block::new("left").step(suspended("first", "The first?")),
        Block::new("right").step(suspended("second", "The second?")),
    ];
    vec![
        Workflow::new("steps")
            .step(nap("begin"))
            .step(nap("end"))
            .step(Step::map("say", json!("'done'"))),
        Workflow::new("compute").step(Step::run("compute", "compute")),
        Workflow::new("confirm")
            .step(suspended("ask", "Delete {{ input.filename | default('it') }}?")),
        Workflow::new("questions").step(Step::all("both", both)),
        Workflow::new("fail").step(Step::run("fail", "fail_late")),
    ]
}

async fn compute(step: StepContext) -> Result<StepOutcome, StepError> {
    let seconds = step.data["seconds"].as_u64().unwrap_or_default();
    pause(seconds * 1000).await;
    Ok(json!({ "computed": step.data["label"] }).into())
}

async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}
