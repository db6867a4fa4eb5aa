//! Routes for clients of OpenAI. Their answers and refusals have OpenAI's shapes.

use serde_json::{Value, json};

use super::components::Components;
use super::described::Described;
use super::parts;
use crate::api::wire::openai::{
    ChunkView, CompletionBody, CompletionView, FailureView, ModelView, ModelsView,
};
use crate::api::wire::ui_stream::DONE;

fn described(operation_id: &'static str, components: &mut Components) -> Described {
    let failure = components.answer::<FailureView<'_>>();
    let content = json!({ "application/json": { "schema": failure } });
    Described::new(operation_id).failing_as(parts::response("A refusal", content, &[]))
}

pub(super) fn models(components: &mut Components) -> Described {
    let data = components.answer::<ModelsView>();
    described("listModels", components).answering(200, bare("The models", &data))
}

pub(super) fn model(components: &mut Components) -> Described {
    let data = components.answer::<ModelView>();
    described("describeModel", components)
        .with([parts::path(parts::TAIL, "Name of the model", json!({ "type": "string" }))])
        .answering(200, bare("The model", &data))
}

pub(super) fn complete(components: &mut Components) -> Described {
    let body = components.body::<CompletionBody>();
    let data = components.answer::<CompletionView<'_>>();
    let chunk = components.answer::<ChunkView<'_>>();
    let example = json!({
        "model": "assistant", "messages": [{ "role": "user", "content": "hello" }],
    });
    let mut content = json!({ "application/json": { "schema": data } });
    content["text/event-stream"] =
        parts::events(json!({ "anyOf": [chunk, { "const": DONE }] }), &Value::Null);
    let answer = parts::response("The completion", content, &parts::ABOUT_GENERATION);
    described("completeChat", components)
        .about(
            "`model` is the id of an agent, or `workflow/` and the id of a workflow, which gets the \
             last message as its input. Calls of tools in the request end the answer; the agent's own \
             tools are called here. With the header `X-Conversation-Id`, the agent remembers the \
             conversation, and only messages after its last answer are new.",
        )
        .with_body(body, true, example)
        .answering(200, answer)
}

fn bare(about: &str, schema: &Value) -> Value {
    parts::response(about, json!({ "application/json": { "schema": schema } }), &[])
}
