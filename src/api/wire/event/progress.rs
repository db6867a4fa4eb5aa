//! Progress of the agent, function or tool of a step, as events without a number.

use std::io::Write as _;

use greenroom_actors::domain::ids::step_id_of;
use greenroom_actors::requests::{ProgressBatch, ProgressEvent};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::schema::SchemaType;
use utoipa::openapi::{Object, ObjectBuilder};

use crate::api::wire::Iso;
use crate::api::wire::raw_stream::{RawEvent, raw_event};
use crate::api::wire::shape::one_of;

/// Data of a `step-progress` event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ProgressEvent)]
#[serde(rename_all = "camelCase")]
pub struct ProgressFrame<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = kind)]
    kind: &'static str,
    execution_id: &'a str,
    timestamp: Iso,
    from: &'a str,
    path: &'a str,
    /// An event of the stream of an agent, or any value of a function or a tool.
    #[schema(schema_with = any_event)]
    event: Event<'a>,
}

/// Content of the event.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Event<'a> {
    Agent(RawEvent<'a>),
    Function(&'a Value),
}

/// Any value, without a reference to a union, which generators of clients handle badly.
fn any_event() -> Object {
    let about = "An event of the stream of the agent (`RawStreamEvent`), or any value of a function \
                 or a tool.";
    ObjectBuilder::new().schema_type(SchemaType::AnyValue).description(Some(about)).build()
}

fn kind() -> Object {
    one_of(["step-progress"])
}

/// Renders progress as server-sent events. They have no number, since they cannot be replayed.
pub fn render_progress(batch: &ProgressBatch) -> Vec<u8> {
    let mut out = Vec::new();
    for event in batch.events() {
        let frame = ProgressFrame {
            kind: "step-progress",
            execution_id: batch.execution_id.as_str(),
            timestamp: Iso(batch.at),
            from: step_id_of(&batch.path),
            path: &batch.path,
            event: match event {
                ProgressEvent::Agent(event) => Event::Agent(raw_event(event)),
                ProgressEvent::Function(event) => Event::Function(event),
            },
        };
        let written = out
            .write_all(b"data: ")
            .and_then(|()| serde_json::to_writer(&mut out, &frame).map_err(Into::into))
            .and_then(|()| out.write_all(b"\n\n"));
        debug_assert!(written.is_ok(), "progress of {} could not be written", batch.execution_id);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, OnceLock};

    use greenroom_actors::agent::generation::{GenerationEvent, GenerationProgress};
    use greenroom_actors::domain::ids::ExecutionId;
    use greenroom_actors::domain::time::Timestamp;
    use greenroom_actors::requests::StepProgress;
    use serde_json::json;

    use super::*;

    fn batch(path: &str, progress: Vec<StepProgress>) -> ProgressBatch {
        ProgressBatch {
            execution_id: ExecutionId::trusted("e1"),
            path: Arc::from(path),
            at: Timestamp(1_700_000_000_000),
            progress,
            rendered: OnceLock::new(),
        }
    }

    #[test]
    fn progress_names_its_step_and_has_no_number() {
        let mut progress: Vec<_> = [GenerationEvent::StepStart, GenerationEvent::Abort]
            .map(|event| StepProgress::Agent(GenerationProgress(Arc::from([event]))))
            .into();
        progress.push(StepProgress::Function(Arc::new(json!({ "done": 3 }))));
        let text =
            String::from_utf8(render_progress(&batch("checks/letter/write", progress))).unwrap();
        let frames: Vec<&str> = text.split_terminator("\n\n").collect();
        let data: Vec<Value> = frames
            .iter()
            .map(|frame| serde_json::from_str(frame.strip_prefix("data: ").unwrap()).unwrap())
            .collect();
        let progress =
            [json!({ "type": "start-step" }), json!({ "type": "abort" }), json!({ "done": 3 })];
        let expected = progress.map(|event| {
            json!({
                "type": "step-progress", "executionId": "e1",
                "timestamp": "2023-11-14T22:13:20.000Z", "from": "write",
                "path": "checks/letter/write", "event": event
            })
        });
        assert_eq!(data, expected);
    }
}
