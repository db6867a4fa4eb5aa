//! Routes of agents.

use greenroom_actors::ports::model::ModelErrorKind;
use greenroom_actors::ports::store::GenerationStatus;
use greenroom_actors::registry::Registry;
use serde_json::{Value, json};

use super::components::Components;
use super::described::Described;
use super::{bodies, configured, frames, inbox, parts};
use crate::api::error::{ApiError, AskRefusal, GenerationFailure, Product};
use crate::api::wire::agent::{AgentDetailView, AgentView, CancelledGenerationView, TextView};
use crate::api::wire::history::{HistoryEntryView, HistoryView};
use crate::api::wire::inbox::AskDetailView;
use crate::api::wire::pending_ask::ApproveBody;
use crate::api::wire::ui_stream::DONE;

fn not_found() -> ApiError {
    ApiError::AgentNotFound("assistant".to_owned().into())
}

pub(super) fn list(components: &mut Components) -> Described {
    let item = components.answer::<AgentView<'_>>();
    let data = json!({ "type": "array", "items": item });
    Described::new("listAgents").answering(200, parts::json_answer("All agents", data))
}

fn of_agent(
    operation_id: &'static str,
    registry: &Registry,
    components: &mut Components,
) -> Described {
    let id = configured::agent_id(registry, components);
    Described::new(operation_id).with([id]).refusing([not_found()])
}

pub(super) fn describe(registry: &Registry, components: &mut Components) -> Described {
    let data = components.answer::<AgentDetailView<'_>>();
    of_agent("describeAgent", registry, components)
        .answering(200, parts::json_answer("The agent", data))
}

/// Returns all failures of a generation before its first output.
pub(super) fn failures(product: Product) -> Vec<ApiError> {
    let failed = |message: &str, cause| ApiError::GenerationFailed {
        id: Some("018f".into()),
        product,
        message: message.to_owned(),
        cause,
    };
    vec![
        failed("the model is not available", GenerationFailure::Provider(ModelErrorKind::Other)),
        failed("too many requests", GenerationFailure::Provider(ModelErrorKind::RateLimited)),
        failed("the key was refused", GenerationFailure::Provider(ModelErrorKind::Auth)),
        failed("no answer in time", GenerationFailure::Provider(ModelErrorKind::Timeout)),
        failed("instructions: undefined value", GenerationFailure::Agent),
        failed("the generation was cancelled", GenerationFailure::Cancelled),
    ]
}

fn generating(
    operation_id: &'static str,
    product: Product,
    body: &str,
    registry: &Registry,
    components: &mut Components,
) -> Described {
    let example = match product {
        Product::Text => json!({ "input": "hello" }),
        Product::Object => bodies::object_example(),
    };
    of_agent(operation_id, registry, components)
        .with_body(parts::reference("schemas", body), true, example)
        .refusing(failures(product))
        .refusing([ApiError::GenerationExists("018f".to_owned())])
        .using_runtime()
}

pub(super) fn text(registry: &Registry, components: &mut Components) -> Described {
    let data = components.answer::<TextView<'_>>();
    generating("generateText", Product::Text, bodies::GENERATION, registry, components)
        .about(format!("The generation is cancelled if the client disconnects. {ASYNC}"))
        .answering(200, parts::generated_answer("The text", data))
}

/// Note about answers before the outcome. They are no responses of the document: clients that are
/// made from it would have to distinguish them in every call.
const ASYNC: &str = "With the header `Prefer: respond-async` the server answers 202 without a body \
    once the generation is recorded, and `Location` is the address of its outcome; the generation \
    then continues if the client disconnects.";

pub(super) fn object(registry: &Registry, components: &mut Components) -> Described {
    components.answer::<TextView<'_>>();
    let data = json!({ "description": "An object that matches the schema. While the generation \
        waits for people: `GeneratedText`, with `status` \"suspended\" and `object` null." });
    generating("generateObject", Product::Object, bodies::OBJECT, registry, components)
        .about(format!(
            "The answer of the model is validated; the model is asked again if it does not match. \
             {ASYNC}"
        ))
        .answering(200, parts::generated_answer("The object", data))
        .refusing([schema_invalid()])
}

fn schema_invalid() -> ApiError {
    ApiError::SchemaInvalid("schema at /type: \"strin\" is not a type".to_owned())
}

/// Note about the start and the failures of streams.
const BEGINS: &str = "The response starts before the first output: later failures, and a \
    cancellation, are the last event of the stream.";

fn stream_answer(event: &str, example: &Value) -> Value {
    let event = parts::reference("schemas", event);
    json!({ "text/event-stream": parts::events(event, example) })
}

pub(super) fn stream(registry: &Registry, components: &mut Components) -> Described {
    let example = json!({ "type": "text-delta", "id": "0", "delta": "hel", "text": "hel" });
    let content = stream_answer(frames::RAW_EVENT, &example);
    generating("streamText", Product::Text, bodies::GENERATION, registry, components)
        .about(format!("The generation is cancelled if the client disconnects. {BEGINS}"))
        .answering(200, parts::response("The events", content, &parts::ABOUT_GENERATION))
}

fn chat_events() -> Value {
    let example = json!({ "type": "text-delta", "id": "0", "delta": "hel" });
    let mut content = stream_answer(frames::CHAT_EVENT, &example);
    let data = &mut content["text/event-stream"]["schema"]["properties"]["data"];
    *data = json!({ "anyOf": [data.take(), { "const": DONE }] });
    let about = "UI message chunks, then `[DONE]`";
    let mut answer = parts::response(about, content, &parts::ABOUT_GENERATION);
    answer["headers"]["x-vercel-ai-ui-message-stream"] =
        json!({ "schema": { "const": "v1" }, "description": "Version of the stream." });
    answer
}

pub(super) fn chat(registry: &Registry, components: &mut Components) -> Described {
    generating("chat", Product::Text, bodies::CHAT, registry, components)
        .about(format!(
            "For the chat hooks of the AI SDK; their default body is accepted as well. If the last \
             message is the assistant's with answers to what its generation waits for, that one \
             continues. {BEGINS}"
        ))
        .refusing(inbox::of_answers())
        .answering(200, chat_events())
}

pub(super) fn attach(registry: &Registry, components: &mut Components) -> Described {
    let conversation = parts::path("conversationId", "The conversation", parts::name());
    let user = json!({ "type": "string" });
    let unreadable = ApiError::InvalidRequest("the query cannot be read".to_owned());
    of_agent("attachToChat", registry, components)
        .with([conversation])
        .with([parts::query(
            "userId",
            "User of the conversation; overridden by that of a token",
            user,
        )])
        .answering(200, chat_events())
        .answering(204, parts::response("No chat is running", Value::Null, &[]))
        .refusing([unreadable])
}

pub(super) fn stream_object(registry: &Registry, components: &mut Components) -> Described {
    let example = json!({ "type": "object-delta", "object": { "name": "A" } });
    let mut content = stream_answer(frames::OBJECT_EVENT, &example);
    content["text/plain"] = json!({ "schema": {
        "type": "string", "description": "Only the JSON of the object, as it arrives." } });
    let format = json!({ "type": "string", "enum": ["sse", "text"] });
    let about = "Overrides `Accept`.";
    generating("streamObject", Product::Object, bodies::OBJECT, registry, components)
        .about(
            "With `Accept: text/plain` without `text/event-stream`, or `format=text`, the \
             response is only the JSON; a failure then closes the connection.",
        )
        .with_query([parts::query("format", about, format)])
        .answering(200, parts::response("The events", content, &parts::ABOUT_GENERATION))
        .refusing([schema_invalid()])
}

pub(super) fn cancel(registry: &Registry, components: &mut Components) -> Described {
    let data = components.answer::<CancelledGenerationView<'_>>();
    let id = || "018f".to_owned();
    of_agent("cancelGeneration", registry, components)
        .with([parts::path("generationId", "Id of the generation", parts::any_id())])
        .with_body(json!({ "type": "object" }), false, json!({}))
        .answering(200, parts::generation_answer("The generation is cancelled", data))
        .refusing([
            ApiError::GenerationNotFound(id()),
            ApiError::GenerationAlready { id: id(), status: GenerationStatus::Completed },
            ApiError::ServerUnreachable,
        ])
        .using_runtime()
}

pub(super) fn approve(registry: &Registry, components: &mut Components) -> Described {
    let data = components.answer::<AskDetailView<'_>>();
    let body = components.body::<ApproveBody>();
    let example = json!({ "toolCallId": "call-1", "approved": true });
    of_agent("approveCall", registry, components)
        .about(
            "As an answer to the ask in the inbox. Responds when the answer is recorded; the \
             generation continues once all of its asks are answered.",
        )
        .with([parts::path("generationId", "Id of the generation", parts::any_id())])
        .with_body(body, true, example)
        .answering(200, inbox::tagged("The answered ask", data))
        .refusing(inbox::of_answers())
        .refusing([
            ApiError::GenerationNotFound("018f".to_owned()),
            ApiError::Ask(AskRefusal::Ambiguous {
                of: "of call call-1".to_owned(),
                asks: vec!["ask_1".to_owned(), "ask_2".to_owned()],
            }),
        ])
        .using_runtime()
        .using_memory()
}

pub(super) fn generation(registry: &Registry, components: &mut Components) -> Described {
    let data = components.answer::<HistoryEntryView<'_>>();
    of_agent("describeGeneration", registry, components)
        .about("Also the outcome of a request with `Prefer: respond-async`.")
        .with([parts::path("generationId", "Id of the generation", parts::any_id())])
        .answering(200, parts::generation_answer("The generation", data))
        .refusing([ApiError::GenerationNotFound("018f".to_owned())])
        .using_runtime()
}

pub(super) fn history(registry: &Registry, components: &mut Components) -> Described {
    let data = components.answer::<HistoryView<'_>>();
    of_agent("showHistory", registry, components)
        .with_query([
            parts::query("page", "Number of the page, from 0", parts::number(0, u32::MAX, 0)),
            parts::query("limit", "Maximum number of entries", parts::number(1, 100, 10)),
        ])
        .answering(200, parts::json_answer("A page, newest first", data))
        .using_runtime()
}
