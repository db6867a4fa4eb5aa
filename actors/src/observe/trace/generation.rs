//! Spans of generations, from their records: pure.
//!
//! A generation's own span has below it one for each question to the model, one for each call of
//! a tool, and what was read from and written to its conversation. Turns that were stored before
//! their course was kept give none.

use std::sync::Arc;

use crate::domain::message::ToolOutcome;
use crate::domain::time::Timestamp;
use crate::domain::trace::{SpanId, Trace};
use crate::observe::span::{MemoryOperation, Owner, Span, SpanEvent, SpanStatus, SpanWork};
use crate::observe::trace::execution::CANCELLED;
use crate::ports::store::{GenerationEntry, GenerationRecord, GenerationStatus, GenerationStep};

/// The span of a generation.
pub(crate) fn generation_span(trace: &Trace, id: &str) -> SpanId {
    trace.span(&[id])
}

/// The span of the question that gave the turn of this number.
pub(crate) fn chat_span(trace: &Trace, id: &str, turn: usize) -> SpanId {
    trace.span(&[id, "turn", &turn.to_string()])
}

/// The span of a call that the turn asked for.
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

/// All spans of a generation, in the order in which they became known.
pub(crate) fn spans_of_entry(entry: &GenerationEntry) -> Vec<SpanEvent> {
    let turns: Vec<_> = entry.steps.iter().cloned().map(Arc::new).collect();
    news(&Arc::new(entry.record.clone()), turns.iter(), &mut Told::default())
}

/// Which spans of a generation were told of.
#[derive(Debug, Default)]
pub(crate) struct Told {
    has_begun: bool,
    turns: Vec<ToldTurn>,
}

#[derive(Debug, Default)]
struct ToldTurn {
    has_chat: bool,
    /// Of the calls that have begun, which have ended.
    calls: Vec<bool>,
}

/// The spans that have begun or ended and that nobody was told of. What begins comes before what
/// is below it, and ends behind it.
pub(crate) fn news<'a>(
    record: &Arc<GenerationRecord>,
    turns: impl Iterator<Item = &'a Arc<GenerationStep>>,
    told: &mut Told,
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
    if !std::mem::replace(&mut told.has_begun, true) {
        events.push(agent.clone().started());
    }
    let (mut has_memory, mut has_text) = (false, false);
    for (number, turn) in turns.enumerate() {
        has_memory |= turn.course.memory_read.is_some();
        has_text |= !turn.text.is_empty() && !turn.course.is_rejected;
        if told.turns.len() == number {
            told.turns.push(ToldTurn::default());
        }
        if let Some(told) = told.turns.get_mut(number) {
            news_of_turn(&agent, record, number, turn, told, &mut events);
        }
    }
    let Some(at) = record.end_time else { return events };
    let status = match record.status {
        GenerationStatus::Working => return events,
        GenerationStatus::Completed => SpanStatus::Ok,
        GenerationStatus::Error | GenerationStatus::Cancelled => {
            SpanStatus::Error(Arc::from(why_ended(record)))
        }
    };
    let is_kept = match record.status {
        GenerationStatus::Completed => true,
        // as far as something was said
        GenerationStatus::Cancelled => has_text,
        GenerationStatus::Working | GenerationStatus::Error => false,
    };
    if has_memory && is_kept {
        // it is part of the commit that ends the run
        whole(memory(&agent, record, MemoryOperation::Write, at), at, SpanStatus::Ok, &mut events);
    }
    events.push(agent.ended(at, status));
    events
}

fn news_of_turn(
    agent: &Span,
    record: &GenerationRecord,
    number: usize,
    turn: &Arc<GenerationStep>,
    told: &mut ToldTurn,
    events: &mut Vec<SpanEvent>,
) {
    let course = &turn.course;
    let Some(chat) = course.chat else { return };
    if !std::mem::replace(&mut told.has_chat, true) {
        if let Some(read) = course.memory_read {
            let span = memory(agent, record, MemoryOperation::Read, read.start);
            whole(span, read.end.unwrap_or(read.start), SpanStatus::Ok, events);
        }
        let id = chat_span(&record.trace, &record.id, number);
        let work = SpanWork::Chat {
            number: u32::try_from(number).unwrap_or(u32::MAX),
            turn: Arc::clone(turn),
        };
        let status = match &course.error {
            None => SpanStatus::Ok,
            Some(error) => SpanStatus::Error(Arc::from(error.message.as_str())),
        };
        whole(below(agent, id, chat.start, work), chat.end.unwrap_or(chat.start), status, events);
    }
    let spans = course.calls.iter().enumerate().map(|(call, period)| {
        let id = call_span(&record.trace, &record.id, number, call);
        let work = SpanWork::Tool { call, turn: Arc::clone(turn) };
        below(agent, id, period.start, work)
    });
    for (call, span) in spans.enumerate() {
        if told.calls.len() == call {
            told.calls.push(false);
            events.push(span.clone().started());
        }
        let end = course.calls.get(call).and_then(|period| period.end).or(record.end_time);
        let Some((at, has_ended)) = end.zip(told.calls.get_mut(call)) else { continue };
        if !std::mem::replace(has_ended, true) {
            events.push(span.ended(at, outcome(record, turn, call)));
        }
    }
}

/// How a call ended. What has no result was cut off with the run.
fn outcome(record: &GenerationRecord, turn: &GenerationStep, call: usize) -> SpanStatus {
    match turn.result_of(call).map(|result| &result.outcome) {
        Some(ToolOutcome::Output(_)) => SpanStatus::Ok,
        Some(ToolOutcome::Error(message)) => SpanStatus::Error(Arc::from(message.as_str())),
        None => SpanStatus::Error(Arc::from(why_ended(record))),
    }
}

fn why_ended(record: &GenerationRecord) -> &str {
    match record.status {
        GenerationStatus::Cancelled => CANCELLED,
        GenerationStatus::Working | GenerationStatus::Completed | GenerationStatus::Error => {
            record.error.as_deref().unwrap_or("failed")
        }
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

/// A span that is known when it is over.
fn whole(span: Span, end: Timestamp, status: SpanStatus, events: &mut Vec<SpanEvent>) {
    events.push(span.clone().started());
    events.push(span.ended(end, status));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::message::ToolCall;
    use crate::domain::trace::{EntityType, TraceOrigin};
    use crate::observe::span::{AttributeValue, SpanPhase};
    use crate::ports::model::{FinishReason, ModelOptions, Served};
    use crate::ports::store::{AskedWith, Period, TurnTiming};

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

    /// A turn that asks for a tool, which works.
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
            course: TurnTiming {
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
    fn a_record_gives_the_spans_that_are_known() {
        let begun = ["100 invoke_agent clerk", "110 chat small", "-150 chat small"];
        let working = [begun.as_slice(), &["160 execute_tool add"]].concat();
        let cut_off = |why| {
            let ends = [
                format!("-200 execute_tool add: {why}"),
                format!("-200 invoke_agent clerk: {why}"),
            ];
            working.iter().map(|line| (*line).to_owned()).chain(ends).collect::<Vec<_>>()
        };
        use GenerationStatus::{Cancelled, Completed, Error, Working};
        assert_eq!(lines(record(Working, None, None), vec![turn()]), working);
        let why = "interrupted by a restart";
        assert_eq!(lines(record(Error, Some(200), Some(why)), vec![turn()]), cut_off(why));
        assert_eq!(lines(record(Cancelled, Some(200), None), vec![turn()]), cut_off("cancelled"));
        let old = GenerationStep { course: TurnTiming::default(), ..turn() };
        let whole = ["100 invoke_agent clerk", "-200 invoke_agent clerk"];
        assert_eq!(lines(record(Completed, Some(200), None), vec![old]), whole);
    }

    #[test]
    fn a_chat_says_who_answered_and_when_and_what_only_if_asked() {
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
        let said = spans[2].span.attributes(true);
        let said = said.iter().find(|(key, _)| *key == "gen_ai.output.messages").unwrap();
        let AttributeValue::Text(said) = &said.1 else { panic!("{said:?}") };
        assert!(said.contains("tool_call") && said.contains("\"n\":1"), "{said}");
    }
}
