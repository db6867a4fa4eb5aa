//! `[limits]`: limits of the server and the runtime.

use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::domain::nesting::VALUE_DEPTH_MAX;

use super::calls::{MEMORY_BYTES, OUTPUT_BYTES};
use super::entry::Entry;
use super::keys::{Keys as _, Takes, Value, section};
use super::section::Section;
use crate::adapters::tools::OutgoingHost;

/// Default of `connections_max`.
pub const CONNECTIONS_MAX: usize = 25_000;

const BYTES: Takes = Takes::Bytes(1..=1 << 30);
const COUNT: Takes = Takes::Integer(1..=1_000_000_000);

section! {
    /// Limits of the server.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct LimitsConfig {
        /// Estimated memory of the values of all executions in memory; beyond it, new executions,
        /// and resumes of executions that are not in memory, are refused (503). Default: a third of
        /// the memory of the machine or of the control group.
        executions_memory_max: Option<u64> = None, Takes::Bytes(1 << 20..=1 << 46);
        /// Threads that run executions; 0: half the cores.
        arbiters: usize = 0, Takes::Integer(0..=1024);
        /// Events that may wait for one slow subscriber; beyond it, the subscriber misses some.
        subscriber_queue: usize = 8192, COUNT;
        /// Bytes of the events that may wait for one slow subscriber.
        subscriber_queue_bytes: usize = 8 * 1024 * 1024, BYTES;
        /// Bytes that may wait for all slow clients together: half for streams and WebSockets, half
        /// for answers of more than 64 KiB. If a half is used up, new streams, or such answers, are
        /// refused (503).
        subscribers_bytes_max: usize = 256 * 1024 * 1024, BYTES;
        /// Bytes of all request bodies that are arriving or are being answered, without the first
        /// 32 KiB of each. Beyond it, larger bodies are refused (503), unless it is the only one.
        requests_bytes_max: usize = 128 * 1024 * 1024, BYTES;
        /// Largest frame that a WebSocket client may send.
        websocket_frame_bytes_max: usize = 64 * 1024, BYTES;
        /// Frames of one message of a WebSocket client, and its control frames per `heartbeat`.
        websocket_fragments_max: usize = 1024, COUNT;
        /// Open connections over all workers; further ones are answered 503 and closed. Default:
        /// 25000, or as many as the limit of open files allows.
        connections_max: Option<usize> = None, COUNT;
        /// Open connections from one address (IPv6: from one /64). Default: half of
        /// `connections_max`.
        connections_per_address_max: Option<usize> = None, COUNT;
        /// Open event streams, streams of generations and WebSockets; further ones are refused
        /// (503). Default: three quarters of `connections_max`.
        streams_max: Option<usize> = None, COUNT;
        /// Open streams and WebSockets from one address. Default: half of `streams_max`.
        streams_per_address_max: Option<usize> = None, COUNT;
        /// Pause between heartbeats on an idle stream or WebSocket.
        heartbeat: Duration = Duration::from_secs(15), Takes::Duration;
        /// Largest request of a step or a tool to another server: URL, headers and body.
        http_request_bytes_max: usize = 1024 * 1024, BYTES;
        /// Largest answer of another server to a step.
        http_answer_bytes_max: usize = 1024 * 1024, BYTES;
        /// Programs of steps and tools at once; further ones wait, which counts towards their time
        /// limit.
        commands_max: usize = 32, Takes::Integer(1..=10_000);
        /// Memory of each process of a program without `memory_bytes_max`.
        command_memory_bytes_max: u64 = 512 * 1024 * 1024, Takes::Bytes(MEMORY_BYTES);
        /// Output of a program without `output_bytes_max`.
        command_output_bytes_max: u64 = 1024 * 1024, Takes::Bytes(OUTPUT_BYTES);
        /// Non-public hosts that calls of steps and tools, and requests for tokens of MCP servers, may
        /// reach even if data chose them: names, addresses, or suffixes such as `*.corp`.
        outgoing_hosts: Vec<OutgoingHost> = Vec::new(), Takes::OwnTexts("an array of hosts");
    }
    and {
        /// Limits of the runtime. [`Config::runtime_limits`](super::Config::runtime_limits) fills in
        /// those that other keys set (`arbiters`, `executions_memory_max`, `passivate_after` of
        /// `[store]`, `[retention]`).
        runtime: RuntimeLimits;
    }
}

section! {
    impl RuntimeLimits {
        /// Largest value that an expression or a function may return, as JSON.
        value_bytes_max: machine.value_bytes_max, BYTES;
        /// Deepest nesting of arrays and objects in a value.
        value_depth_max: machine.value_depth_max, Takes::Integer(8..=VALUE_DEPTH_MAX as i64);
        /// Crashes that may interrupt attempts of one step; with the last one the step fails.
        crash_attempts: machine.crash_attempts, Takes::Integer(1..=1000);
        /// Crashes of the process at the same point of an evaluation after which the execution is
        /// set aside: it fails. 0: never.
        quarantine_after: quarantine_after, Takes::Integer(0..=1000);
        /// Time after which a subscriber that reads nothing, although data is waiting, is
        /// disconnected.
        subscriber_stall_timeout: subscriber_stall_timeout, Takes::Duration,
            formerly "subscriber_stall";
        /// Time that an `Idempotency-Key` is stored.
        idempotency_ttl: idempotency_ttl, Takes::Duration;
        /// Executions in memory at once; further ones are refused (503).
        executions_live_max: executions_live_max, COUNT;
        /// Events of one execution; beyond that it fails.
        events_max: machine.events_max, COUNT;
        /// JSON of all values of one execution; beyond that it fails.
        execution_bytes_max: machine.execution_bytes_max, Takes::Bytes(1..=1_000_000_000);
        /// Restarts of an execution within a minute after panics of its actor.
        actor_restarts_max: actor_restarts_max, Takes::Integer(0..=1000);
        /// Nesting of sub-workflows, and of agents that agents call; a deeper call fails.
        child_depth_max: child_depth_max, Takes::Integer(0..=1000);
        /// Generations of agents at once; further ones are refused (503).
        generations_live_max: generations_live_max, COUNT;
        /// Answers that a program's own check (`on_answer` in Rust) looks at at once; further ones
        /// are refused (503).
        answer_checks_max: answer_checks_max, COUNT;
        /// Repeated requests to a model whose object does not match its schema.
        object_repairs: object_repairs, Takes::Integer(0..=10);
        /// Time limit of an attempt of a step that calls a server or runs a program, without
        /// `timeout`.
        call_timeout: call_timeout, Takes::Duration;
        /// Time limit of a call of a tool without `timeout`.
        tool_timeout: tool_timeout, Takes::Duration;
        /// Largest result of a tool, as JSON. Pictures and files with which it is larger are described.
        tool_result_bytes_max: tool_result_bytes_max, BYTES;
        /// Upper bound for the turns of one generation.
        generation_steps_max: generation_steps_max, Takes::Integer(1..=1000);
        /// Questions to people for which one generation waits at once, those of its sub-agents
        /// included; further calls fail.
        generation_asks_max: generation_asks_max, Takes::Integer(1..=10_000);
        /// Output of the model and results of tools, over all turns of one generation.
        generation_bytes_max: generation_bytes_max, BYTES;
        /// Bytes of the records of one page of the history of an agent, of conversations, messages
        /// or found messages. A page with more is refused (400), which says how many records fit;
        /// one record alone may have more.
        page_bytes_max: page_bytes_max, BYTES;
        /// Facts and turns that one trace, or one page of the list of traces, covers; the rest is
        /// omitted.
        trace_spans_max: trace_spans_max, Takes::Integer(1..=1_000_000);
        /// Estimated memory of the facts and turns of one trace; the rest is omitted, ends of spans
        /// that are shown included. JSON of many small parts takes up to a hundred times its bytes.
        trace_bytes_max: trace_bytes_max, BYTES;
        /// Time limit of the evaluation of one expression, template or schema.
        expression_time_max: expression_time_max, Takes::Duration;
        /// Interval between checks of running executions for progress; `"0s"`: never.
        watchdog_every: watchdog_every, Takes::DurationOrZero;
    }
}

impl LimitsConfig {
    pub(crate) fn read_all(section: Section<'_>) -> Self {
        let runtime = RuntimeLimits::read_keys(&section);
        Self { runtime, ..Self::read(section) }
    }
}

impl Value for Vec<OutgoingHost> {
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        let host = |item: Entry<'_>| match item.text()?.parse::<OutgoingHost>() {
            Ok(host) => Some(host),
            Err(refusal) => item.refuse(refusal.to_string()),
        };
        Some(entry.items()?.into_iter().filter_map(host).collect())
    }
}
