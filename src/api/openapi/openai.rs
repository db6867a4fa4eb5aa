//! Routes for clients of OpenAI. Their answers and refusals have OpenAI's shapes.

use greenroom_actors::domain::ids::ExecutionId;
use serde_json::{Map, Value, json};

use super::components::Components;
use super::described::{Described, RefusalForm};
use super::workflows::key_invalid;
use super::{agents, parts};
use crate::api::error::{ApiError, Product};
use crate::api::wire::openai::{
    ChunkView, CompletionBody, CompletionView, FailureView, ModelView, ModelsView,
};
use crate::api::wire::ui_stream::DONE;

fn described(operation_id: &'static str) -> Described {
    Described { refusal_form: RefusalForm::OpenAi, ..Described::new(operation_id) }
}

/// Returns the content of refusals in OpenAI's form, with an example of each.
pub(super) fn failures(refusals: &[&ApiError], components: &mut Components) -> Value {
    let schema = components.answer::<FailureView<'_>>();
    let example = |refusal: &&ApiError| {
        let text = refusal.to_string();
        let view = FailureView::of(refusal.code(), &text, refusal.place());
        (refusal.code().to_string(), json!({ "value": view }))
    };
    let examples: Map<_, _> = refusals.iter().map(example).collect();
    json!({ "application/json": { "schema": schema, "examples": examples } })
}

fn not_found() -> ApiError {
    ApiError::ModelNotFound("assistant".to_owned().into())
}

pub(super) fn models(components: &mut Components) -> Described {
    let data = components.answer::<ModelsView>();
    described("listModels").answering(200, bare("The models", &data))
}

pub(super) fn model(components: &mut Components) -> Described {
    let data = components.answer::<ModelView>();
    described("describeModel")
        .with([parts::path(parts::TAIL, "Name of the model", json!({ "type": "string" }))])
        .answering(200, bare("The model", &data))
        .refusing([not_found()])
}

pub(super) fn complete(components: &mut Components) -> Described {
    let body = components.body::<CompletionBody>();
    let data = components.answer::<CompletionView<'_>>();
    let chunk = components.answer::<ChunkView<'_>>();
    let example = json!({
        "model": "assistant", "messages": [{ "role": "user", "content": "hello" }],
    });
    let mut content = json!({ "application/json": { "schema": data } });
    let example_chunk = json!({ "id": "chatcmpl-018f", "object": "chat.completion.chunk" });
    content["text/event-stream"] = parts::events(chunk, &example_chunk);
    let data = &mut content["text/event-stream"]["schema"]["properties"]["data"];
    *data = json!({ "anyOf": [data.take(), { "const": DONE }] });
    let answer = parts::response("The completion, or with `stream` its chunks", content, &[]);
    let failed =
        ApiError::ExecutionFailed { id: ExecutionId::trusted("018f"), step_id: None, path: None };
    let failed = parts::response("The workflow failed", failures(&[&failed], components), &[]);
    described("completeChat")
        .about(
            "`model` is the id of an agent, or `workflow/` and the id of a workflow, which gets the \
             last message as its input. Calls of tools in the request end the answer; the agent's own \
             tools are called here. With the header `X-Conversation-Id`, the agent remembers the \
             conversation, and only messages after its last answer are new. With an `Idempotency-Key`, an \
             agent begins one generation, and a repeated request is refused; one of a workflow gets the \
             first answer.",
        )
        .with([parts::reference("parameters", parts::IDEMPOTENCY_KEY)])
        .with_body(body, true, example)
        .answering(200, answer)
        .answering(422, failed)
        .refusing([not_found(), ApiError::unsupported("n", "one answer is given")])
        .refusing(agents::failures(Product::Text))
        .refusing([ApiError::GenerationExists("018f".to_owned()), ApiError::KeyReused, key_invalid()])
        .using_runtime()
        .using_memory()
}

fn bare(about: &str, schema: &Value) -> Value {
    parts::response(about, json!({ "application/json": { "schema": schema } }), &[])
}
