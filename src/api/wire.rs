//! Wire format. Only this module renames fields and names events.

pub mod agent;
pub mod bulk;
pub mod caller;
pub mod conversation;
pub mod counts;
pub mod envelope;
pub mod event;
pub mod execution;
pub mod failure;
pub mod form;
pub mod generation_stream;
pub mod history;
pub mod inbox;
pub mod log;
pub mod log_frame;
pub mod mcp_servers;
pub mod message;
mod object_progress;
pub mod object_stream;
pub mod object_text;
pub mod observability;
pub mod openai;
pub mod outcomes;
pub mod pending_ask;
pub mod problem;
pub mod raw_stream;
mod server_sent;
pub mod shape;
pub mod span;
pub mod stand_in;
pub mod state;
pub mod suspension;
pub mod system;
pub mod tool;
pub mod ui_message;
pub mod ui_stream;
pub mod versions;
pub mod why;
pub mod workflow;

use std::borrow::Cow;

use greenroom_actors::domain::time::Timestamp;
use serde::{Serialize, Serializer};
use utoipa::openapi::{KnownFormat, ObjectBuilder, RefOr, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

/// Timestamp on the wire: ISO 8601, UTC, milliseconds, `Z`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Iso(pub Timestamp);

impl Serialize for Iso {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_iso())
    }
}

impl PartialSchema for Iso {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("ISO 8601 in UTC, with milliseconds and Z."))
            .examples(["2026-01-31T08:15:30.000Z"])
            .into()
    }
}

impl ToSchema for Iso {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Timestamp")
    }
}

/// Header of the execution `e1` of the workflow `order`.
#[cfg(test)]
fn test_header() -> greenroom_actors::ports::store::Header {
    use greenroom_actors::domain::trace::{EntityType, Trace, TraceOrigin};

    greenroom_actors::ports::store::Header {
        id: greenroom_actors::domain::ids::ExecutionId::trusted("e1"),
        workflow_id: "order".into(),
        definition_hash: "h".into(),
        user_id: None,
        conversation_id: None,
        parent: None,
        trace: Trace::of("e1", EntityType::Workflow, &"order".into(), TraceOrigin::New),
        created_at: Timestamp(0),
    }
}
