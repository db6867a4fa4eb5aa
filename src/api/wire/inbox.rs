//! Asks on the wire.

mod bodies;

use greenroom_actors::domain::ids::step_id_of;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    Ask, AskCursor, AskKind, AskState, AskSubject, AskedCall, AskedStep,
};
use greenroom_actors::requests::AskDetail;
use greenroom_actors::runtime::{AskNews, AskNewsKind};
use serde::Serialize;
use serde_json::Value;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use utoipa::openapi::Object as Schema;

pub use self::bodies::{AnswerBody, AskOptions, AssignBody, ClaimBody, LinkBody, ReleaseBody};
use crate::api::wire::Iso;
use crate::api::wire::execution::PrincipalView;
use crate::api::wire::form::{FieldView, form_of};
use crate::api::wire::shape::one_of;
use crate::api::wire::state::number_of;

/// A page of asks.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AskPage)]
#[serde(rename_all = "camelCase")]
pub struct AsksView<'a> {
    pub asks: Vec<AskView<'a>>,
    #[schema(required)]
    pub next_cursor: Option<String>,
    /// True while asks of executions from before an update are still being collected.
    pub incomplete: bool,
}

/// A link with which one person answers an ask.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AskLink)]
#[serde(rename_all = "camelCase")]
pub struct LinkView {
    pub url: String,
    pub expires_at: Iso,
}

/// Something that waits for a person, or did.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Ask)]
#[serde(rename_all = "camelCase")]
pub struct AskView<'a> {
    pub ask_id: &'a str,
    #[schema(schema_with = ask_kind)]
    pub kind: &'static str,
    #[schema(schema_with = ask_state)]
    pub state: &'static str,
    /// Number of changes of who is asked and who has claimed it; its `ETag`.
    pub revision: u64,
    /// Shortened, if it is very long; the state of the execution has the whole.
    pub reason: &'a str,
    /// The step that waits, or the call of a tool.
    pub of: AskedView<'a>,
    /// Users and roles that are asked: `user:<id>`, `role:<name>`, and `!self` if the one who asked is not. Empty:
    /// everyone who sees it.
    pub to: Vec<String>,
    /// User who is about to answer.
    #[schema(required)]
    pub claimed_by: Option<&'a str>,
    /// End of the claim.
    #[schema(required)]
    pub claimed_until: Option<Iso>,
    /// User of the execution or the generation.
    #[schema(required)]
    pub user_id: Option<&'a str>,
    pub opened_at: Iso,
    #[schema(required)]
    pub deadline: Option<Iso>,
    #[schema(required)]
    pub closed_at: Option<Iso>,
}

/// Step or call that waits for a person.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Asked)]
#[serde(untagged)]
pub enum AskedView<'a> {
    Step(AskedStepView<'a>),
    Call(AskedCallView<'a>),
}

/// A step that waits for a person.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AskedStep)]
#[serde(rename_all = "camelCase")]
pub struct AskedStepView<'a> {
    pub workflow_id: &'a str,
    pub execution_id: &'a str,
    pub step_id: &'a str,
    pub path: &'a str,
}

/// A call of a tool that waits for a person.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AskedCall)]
#[serde(rename_all = "camelCase")]
pub struct AskedCallView<'a> {
    pub agent_id: &'a str,
    pub generation_id: &'a str,
    pub tool_call_id: &'a str,
    pub tool_name: &'a str,
    /// The step that asked the agent, if one did; not of the calls of its sub-agents.
    pub step: Option<AskedStepView<'a>>,
}

/// An ask with what is needed to answer it.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AskDetail)]
#[serde(rename_all = "camelCase")]
pub struct AskDetailView<'a> {
    #[serde(flatten)]
    pub ask: AskView<'a>,
    /// Data that the step shows.
    #[schema(value_type = Value, required)]
    #[serialize_always]
    pub payload: Option<&'a Value>,
    /// JSON Schema of the answer.
    #[schema(value_type = Value, required)]
    #[serialize_always]
    pub schema: Option<&'a Value>,
    /// The fields of the answer in order, if its schema is an object of plain values.
    #[schema(required)]
    #[serialize_always]
    pub form: Option<Vec<FieldView<'a>>>,
    /// True if `{"action": "decline"}` is an answer too, whatever the schema is.
    pub can_decline: Option<bool>,
    /// The answer, once there is one.
    pub data: Option<&'a Value>,
    pub answered_by: Option<PrincipalView<'a>>,
}

impl<'a> AskedView<'a> {
    fn of(subject: &'a AskSubject) -> Self {
        match subject {
            AskSubject::Step(step) => Self::Step(AskedStepView::of(step)),
            AskSubject::Call(call) => Self::Call(AskedCallView::of(call)),
        }
    }
}

impl<'a> AskedStepView<'a> {
    fn of(step: &'a AskedStep) -> Self {
        Self {
            workflow_id: &step.workflow_id,
            execution_id: step.execution_id.as_str(),
            step_id: step_id_of(&step.path),
            path: &step.path,
        }
    }
}

impl<'a> AskedCallView<'a> {
    fn of(call: &'a AskedCall) -> Self {
        let AskedCall { generation_id, agent_id, tool_call_id, tool_name, step } = call;
        let step = step.as_ref().map(AskedStepView::of);
        Self { agent_id, generation_id, tool_call_id, tool_name, step }
    }
}

impl<'a> AskView<'a> {
    /// Shows an ask whose claim, if it has one, lasts.
    pub fn of(ask: &'a Ask) -> Self {
        Self {
            ask_id: &ask.id,
            kind: ask.kind.as_str(),
            state: ask.state.as_str(),
            revision: ask.revision,
            reason: &ask.reason,
            of: AskedView::of(&ask.subject),
            to: ask.rules.to.iter().map(ToString::to_string).collect(),
            claimed_by: ask.claim.as_ref().map(|claim| &*claim.by),
            claimed_until: ask.claim.as_ref().map(|claim| Iso(claim.until)),
            user_id: ask.user_id.as_deref(),
            opened_at: Iso(ask.opened_at),
            deadline: ask.deadline.map(Iso),
            closed_at: ask.closed_at.map(Iso),
        }
    }
}

impl<'a> AskDetailView<'a> {
    /// Shows an ask with its payload, and its answer.
    pub fn of(detail: &'a AskDetail) -> Self {
        let AskDetail { ask, payload, schema, can_decline, answer, .. } = detail;
        let schema = schema.as_ref();
        let answer = answer.as_ref();
        Self {
            ask: AskView::of(ask),
            payload: payload.as_deref(),
            schema,
            form: schema.and_then(form_of),
            can_decline: can_decline.then_some(true),
            data: answer.map(|answer| &*answer.data),
            answered_by: answer.and_then(|answer| answer.by.as_deref()).map(PrincipalView::of),
        }
    }
}

/// News of an ask.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AskEvent)]
#[serde(rename_all = "camelCase")]
pub struct NewsView<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = news_kind)]
    kind: &'static str,
    /// The ask as it is now. None with `overflow`: from here on some changes are missed, as more
    /// than 10,000 asks are open.
    #[serde(skip_serializing_if = "Option::is_none")]
    ask: Option<AskView<'a>>,
}

/// Name of the event that reports missed changes.
const OVERFLOW: &str = "overflow";

/// Renders news as a server-sent event.
pub fn render_news(news: &AskNews) -> Vec<u8> {
    let view = match news {
        AskNews::Changed { kind, ask } => {
            NewsView { kind: kind.as_str(), ask: Some(AskView::of(ask)) }
        }
        AskNews::Overflow => NewsView { kind: OVERFLOW, ask: None },
    };
    let mut bytes = b"data: ".to_vec();
    // Cannot fail: writes to memory, and all keys are texts.
    let written = serde_json::to_writer(&mut bytes, &view);
    debug_assert!(written.is_ok(), "news could not be written");
    bytes.extend_from_slice(b"\n\n");
    bytes
}

fn news_kind() -> Schema {
    one_of(AskNewsKind::ALL.map(AskNewsKind::as_str).into_iter().chain([OVERFLOW]))
}

/// Formats a place in the list of open asks, or of closed ones, as an opaque cursor.
pub fn ask_cursor_text(is_open: bool, cursor: AskCursor) -> String {
    let AskCursor { at, then, row } = cursor;
    let list = if is_open { 'o' } else { 'c' };
    format!("{list}{:016x}{:016x}{row:016x}", at.0, then.0)
}

/// Parses the text of [`ask_cursor_text`]; returns true if it is a place among open asks.
pub fn ask_cursor_of(text: &str) -> Option<(bool, AskCursor)> {
    let (list, place) = text.split_at_checked(1)?;
    let is_open = match list {
        "o" => true,
        "c" => false,
        _ => return None,
    };
    let (at, rest) = place.split_at_checked(16)?;
    let (then, row) = rest.split_at_checked(16)?;
    let time = |text| number_of(text).map(Timestamp);
    Some((is_open, AskCursor { at: time(at)?, then: time(then)?, row: number_of(row)? }))
}

fn ask_kind() -> Schema {
    one_of(AskKind::ALL.map(AskKind::as_str))
}

fn ask_state() -> Schema {
    one_of(AskState::ALL.map(AskState::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_survive_a_round_trip() {
        for is_open in [true, false] {
            let cursor = AskCursor { at: Timestamp(i64::MAX), then: Timestamp(-7), row: 3 };
            let text = ask_cursor_text(is_open, cursor);
            assert_eq!(ask_cursor_of(&text), Some((is_open, cursor)), "{text}");
        }
        let zeros = "0".repeat(48);
        for bad in ["", "o", "x", &zeros, &format!("x{zeros}"), &format!("o{zeros}0"), "ö"] {
            assert_eq!(ask_cursor_of(bad), None, "{bad:?} was accepted");
        }
    }
}
