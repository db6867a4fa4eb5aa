//! Derives spans from the records of generations.
//!
//! The span of a generation has a child for each question to the model, for each tool call, and for
//! reading and writing its conversation. Turns stored without timing have none.

use std::sync::Arc;

use crate::domain::message::ToolOutcome;
use crate::domain::time::Timestamp;
use crate::domain::trace::{SpanId, Trace};
use crate::observe::span::{
    CANCELLED, MemoryOperation, Owner, Span, SpanEvent, SpanStatus, SpanWork,
};
use crate::ports::store::{GenerationEntry, GenerationRecord, GenerationStatus, GenerationStep};

/// Returns the span id of a generation.
pub(crate) fn generation_span(trace: &Trace, id: &str) -> SpanId {
    trace.span(&[id])
}

/// Returns the span id of the question of a turn.
pub(crate) fn chat_span(trace: &Trace, id: &str, turn: usize) -> SpanId {
    trace.span(&[id, "turn", &turn.to_string()])
}

/// Returns the span id of a call of a turn.
pub(crate) fn call_span(trace: &Trace, id: &str, turn: usize, call: usize) -> SpanId {
    trace.span(&[id, "turn", &turn.to_string(), "call", &call.to_string()])
}

fn memory_span(trace: &Trace, id: &str, operation: MemoryOperation) -> SpanId {
    let operation = match operation {
        MemoryOperation::Read => "read",
        MemoryOperation::Write => "write",
    };
    trace.span(&[id, "memory", operation])
}

/// Returns all spans of a generation, in the order in which they become known.
pub(crate) fn spans_of_entry(entry: &GenerationEntry) -> Vec<SpanEvent> {
    let turns: Vec<_> = entry.steps.iter().cloned().map(Arc::new).collect();
    new_spans(&Arc::new(entry.record.clone()), turns.iter(), &mut PublishedSpans::default())
}

/// Spans of a generation published so far.
#[derive(Debug, Default)]
pub(crate) struct PublishedSpans {
    has_begun: bool,
    turns: Vec<PublishedTurn>,
}

#[derive(Debug, Default)]
struct PublishedTurn {
    has_chat: bool,
    /// For each started call, true if its end was published.
    calls: Vec<bool>,
}

/// Returns starts and ends of spans that were not published. A parent starts before and ends after
/// its children.
pub(crate) fn new_spans<'a>(
    record: &Arc<GenerationRecord>,
    turns: impl Iterator<Item = &'a Arc<GenerationStep>>,
    published: &mut PublishedSpans,
) -> Vec<SpanEvent> {
    let mut events = Vec::new();
    let agent = Span {
        id: generation_span(&record.trace, &record.id),
        parent: record.trace.parent_span,
        owner: Owner::Generation(Arc::clone(record)),
        start: record.start_time,
        end: None,
        status: SpanStatus::Unset,
        work: SpanWork::Agent { usage: record.usage },
    };
    if !std::mem::replace(&mut published.has_begun, true) {
        events.push(agent.clone().started());
    }
    let (mut has_memory, mut has_text) = (false, false);
    for (number, turn) in turns.enumerate() {
        has_memory |= turn.timing.memory_read.is_some();
        has_text |= !turn.text.is_empty() && !turn.timing.is_rejected;
        if published.turns.len() == number {
            published.turns.push(PublishedTurn::default());
        }
        if let Some(published) = published.turns.get_mut(number) {
            new_spans_of_turn(&agent, record, number, turn, published, &mut events);
        }
    }
    let Some(at) = record.end_time else { return events };
    let status = match record.status {
        GenerationStatus::Working | GenerationStatus::Suspended => return events,
        GenerationStatus::Completed => SpanStatus::Ok,
        GenerationStatus::Error | GenerationStatus::Cancelled => {
            SpanStatus::Error(Arc::from(why_ended(record)))
        }
    };
    let is_stored = match record.status {
        GenerationStatus::Completed => true,
        // only if there is text
        GenerationStatus::Cancelled => has_text,
        GenerationStatus::Working | GenerationStatus::Suspended | GenerationStatus::Error => false,
    };
    if has_memory && is_stored {
        // it is part of the commit of the end
        whole(memory(&agent, record, MemoryOperation::Write, at), at, SpanStatus::Ok, &mut events);
    }
    events.push(agent.ended(at, status));
    events
}

fn new_spans_of_turn(
    agent: &Span,
    record: &GenerationRecord,
    number: usize,
    turn: &Arc<GenerationStep>,
    published: &mut PublishedTurn,
    events: &mut Vec<SpanEvent>,
) {
    let timing = &turn.timing;
    let Some(chat) = timing.chat else { return };
    if !std::mem::replace(&mut published.has_chat, true) {
        if let Some(read) = timing.memory_read {
            let span = memory(agent, record, MemoryOperation::Read, read.start);
            whole(span, read.end.unwrap_or(read.start), SpanStatus::Ok, events);
        }
        let id = chat_span(&record.trace, &record.id, number);
        let work = SpanWork::Chat {
            number: u32::try_from(number).unwrap_or(u32::MAX),
            turn: Arc::clone(turn),
        };
        let status = match &timing.error {
            None => SpanStatus::Ok,
            Some(error) => SpanStatus::Error(Arc::from(error.message.as_str())),
        };
        whole(below(agent, id, chat.start, work), chat.end.unwrap_or(chat.start), status, events);
    }
    let spans = timing.calls.iter().enumerate().map(|(call, period)| {
        let id = call_span(&record.trace, &record.id, number, call);
        let work = SpanWork::Tool { call, turn: Arc::clone(turn) };
        below(agent, id, period.start, work)
    });
    for (call, span) in spans.enumerate() {
        if published.calls.len() == call {
            published.calls.push(false);
            events.push(span.clone().started());
        }
        let end = timing.calls.get(call).and_then(|period| period.end).or(record.end_time);
        let Some((at, has_ended)) = end.zip(published.calls.get_mut(call)) else { continue };
        if !std::mem::replace(has_ended, true) {
            events.push(span.ended(at, outcome(record, turn, call)));
        }
    }
}

/// Returns the status of a call. One without a result is left to the caller of a run that has
/// completed, and was interrupted with another one.
fn outcome(record: &GenerationRecord, turn: &GenerationStep, call: usize) -> SpanStatus {
    match turn.result_of(call).map(|result| &result.outcome) {
        Some(ToolOutcome::Output(_) | ToolOutcome::Denied(_)) => SpanStatus::Ok,
        Some(ToolOutcome::Error(message)) => SpanStatus::Error(Arc::from(message.as_str())),
        None if record.status == GenerationStatus::Completed => SpanStatus::Ok,
        None => SpanStatus::Error(Arc::from(why_ended(record))),
    }
}

fn why_ended(record: &GenerationRecord) -> &str {
    match record.status {
        GenerationStatus::Cancelled => CANCELLED,
        GenerationStatus::Working
        | GenerationStatus::Suspended
        | GenerationStatus::Completed
        | GenerationStatus::Error => record.error.as_deref().unwrap_or("failed"),
    }
}

fn below(agent: &Span, id: SpanId, start: Timestamp, work: SpanWork) -> Span {
    Span { id, parent: Some(agent.id), start, work, ..agent.clone() }
}

fn memory(
    agent: &Span,
    record: &GenerationRecord,
    operation: MemoryOperation,
    start: Timestamp,
) -> Span {
    let id = memory_span(&record.trace, &record.id, operation);
    below(agent, id, start, SpanWork::Memory { operation })
}

/// Adds start and end of a span that is known only after its end.
fn whole(span: Span, end: Timestamp, status: SpanStatus, events: &mut Vec<SpanEvent>) {
    events.push(span.clone().started());
    events.push(span.ended(end, status));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::message::{ToolCall, ToolResult};
    use crate::domain::trace::{EntityType, TraceOrigin};
    use crate::observe::span::{AttributeValue, SpanPhase};
    use crate::ports::model::{FinishReason, ModelOptions, Served};
    use crate::ports::store::{AskedWith, McpCall, Period, TurnTiming};

    fn record(status: GenerationStatus, end: Option<i64>, error: Option<&str>) -> GenerationRecord {
        GenerationRecord {
            id: "g1".to_owned(),
            agent_id: "clerk".to_owned(),
            status,
            start_time: Timestamp(100),
            end_time: end.map(Timestamp),
            input: json!("how much?"),
            output: None,
            usage: None,
            error: error.map(str::to_owned),
            user_id: None,
            conversation_id: None,
            origin: None,
            trace: Trace::of("g1", EntityType::Agent, &Arc::from("clerk"), TraceOrigin::New),
        }
    }

    /// Returns a turn with a running tool call.
    fn turn() -> GenerationStep {
        let call = ToolCall {
            tool_call_id: "c1".to_owned(),
            tool_name: "add".to_owned(),
            input: json!({ "n": 1 }),
        };
        let options = ModelOptions { temperature: Some(0.5), ..ModelOptions::default() };
        let served = Served {
            provider: Some(Arc::from("gemini")),
            server: Some(Arc::from("models.example")),
            response_id: Some("r1".to_owned()),
            ..Served::of("small")
        };
        GenerationStep {
            tool_calls: vec![call],
            finish_reason: FinishReason::ToolCalls,
            timing: TurnTiming {
                chat: Some(Period { start: Timestamp(110), end: Some(Timestamp(150)) }),
                first_piece: Some(Timestamp(125)),
                asked_with: AskedWith::new(&options, true),
                served: Some(Box::new(served)),
                calls: vec![Period { start: Timestamp(160), end: None }],
                ..TurnTiming::default()
            },
            ..GenerationStep::default()
        }
    }

    fn lines(record: GenerationRecord, steps: Vec<GenerationStep>) -> Vec<String> {
        let spans = spans_of_entry(&GenerationEntry { record, steps });
        let line = |SpanEvent { phase, span }: SpanEvent| match (phase, span.end, &span.status) {
            (SpanPhase::Started, ..) => format!("{} {}", span.start.0, span.name()),
            (SpanPhase::Ended, Some(end), SpanStatus::Error(why)) => {
                format!("-{} {}: {why}", end.0, span.name())
            }
            (SpanPhase::Ended, end, _) => format!("-{} {}", end.unwrap().0, span.name()),
        };
        spans.into_iter().map(line).collect()
    }

    #[test]
    fn spans_are_derived_from_partial_and_whole_records() {
        let begun = ["100 invoke_agent clerk", "110 chat small", "-150 chat small"];
        let working = [begun.as_slice(), &["160 execute_tool add"]].concat();
        let interrupted = |why| {
            let ends = [
                format!("-200 execute_tool add: {why}"),
                format!("-200 invoke_agent clerk: {why}"),
            ];
            working.iter().map(|line| (*line).to_owned()).chain(ends).collect::<Vec<_>>()
        };
        use GenerationStatus::{Cancelled, Completed, Error, Working};
        assert_eq!(lines(record(Working, None, None), vec![turn()]), working);
        let why = "interrupted by a restart";
        assert_eq!(lines(record(Error, Some(200), Some(why)), vec![turn()]), interrupted(why));
        assert_eq!(
            lines(record(Cancelled, Some(200), None), vec![turn()]),
            interrupted("cancelled")
        );
        let old = GenerationStep { timing: TurnTiming::default(), ..turn() };
        let whole = ["100 invoke_agent clerk", "-200 invoke_agent clerk"];
        assert_eq!(lines(record(Completed, Some(200), None), vec![old]), whole);
    }

    #[test]
    fn calls_of_mcp_servers_have_the_attributes_of_their_requests() {
        let some = |text: &str| Some(Arc::from(text));
        let over_http = McpCall {
            is_http: true,
            server: some("mcp.example"),
            port: Some(443),
            protocol_version: some("2026-07-28"),
            session_id: some("s1"),
            request_id: some("7"),
            tool: None,
            error_code: Some(-32602),
        };
        let names = [
            "gen_ai.tool.name",
            "mcp.method.name",
            "mcp.protocol.version",
            "mcp.session.id",
            "jsonrpc.request.id",
            "network.transport",
            "server.address",
            "server.port",
            "rpc.response.status_code",
            "error.type",
        ];
        let rows: [(Option<McpCall>, [&str; 10]); 3] = [
            (None, ["add", "", "", "", "", "", "", "", "", "tool_error"]),
            (
                Some(McpCall { request_id: some("7"), ..McpCall::default() }),
                ["add", "tools/call", "", "", "7", "pipe", "", "", "", "tool_error"],
            ),
            (
                Some(over_http),
                [
                    "add",
                    "tools/call",
                    "2026-07-28",
                    "s1",
                    "7",
                    "tcp",
                    "mcp.example",
                    "443",
                    "-32602",
                    "-32602",
                ],
            ),
        ];
        for (request, expected) in rows {
            let mut turn = turn();
            turn.timing.calls[0].end = Some(Timestamp(170));
            turn.timing.mcp = request.into_iter().map(|request| (0, request)).collect();
            let ToolCall { tool_call_id, tool_name, input } = turn.tool_calls[0].clone();
            let outcome = ToolOutcome::Error("no".to_owned());
            turn.tool_results = vec![ToolResult { tool_call_id, tool_name, input, outcome }];
            let record = record(GenerationStatus::Working, None, None);
            let spans = spans_of_entry(&GenerationEntry { record, steps: vec![turn] });
            let attributes = spans.last().unwrap().span.attributes(false);
            let of = |name: &str| match attributes.iter().find(|(key, _)| *key == name) {
                None => String::new(),
                Some((_, AttributeValue::Text(text))) => text.clone(),
                Some((_, AttributeValue::Int(number))) => number.to_string(),
                Some((_, other)) => panic!("{other:?}"),
            };
            assert_eq!(names.map(of), expected);
        }
    }

    #[test]
    fn chat_attributes_include_content_only_on_request() {
        let record = record(GenerationStatus::Working, None, None);
        let spans = spans_of_entry(&GenerationEntry { record, steps: vec![turn()] });
        let attributes = spans[2].span.attributes(false);
        let of = |name: &str| {
            attributes.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone())
        };
        let text = |text: &str| Some(AttributeValue::from(text));
        let rows = [
            ("gen_ai.operation.name", text("chat")),
            ("gen_ai.provider.name", text("gcp.gemini")),
            ("gen_ai.request.model", text("small")),
            ("gen_ai.request.temperature", Some(AttributeValue::Float(0.5))),
            ("gen_ai.request.stream", Some(AttributeValue::Bool(true))),
            ("gen_ai.response.id", text("r1")),
            ("gen_ai.response.time_to_first_chunk", Some(AttributeValue::Float(0.015))),
            (
                "gen_ai.response.finish_reasons",
                Some(AttributeValue::Texts(vec!["tool_call".to_owned()])),
            ),
            ("server.address", text("models.example")),
            ("error.type", None),
            ("gen_ai.output.messages", None),
        ];
        for (name, expected) in rows {
            assert_eq!(of(name), expected, "{name}");
        }
        let with_content = spans[2].span.attributes(true);
        let content =
            with_content.iter().find(|(key, _)| *key == "gen_ai.output.messages").unwrap();
        let AttributeValue::Text(text) = &content.1 else { panic!("{content:?}") };
        assert!(text.contains("tool_call") && text.contains("\"n\":1"), "{text}");
    }
}
