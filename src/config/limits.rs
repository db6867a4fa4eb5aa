//! `[limits]`: how much of everything.

use std::ops::RangeInclusive;
use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::domain::nesting::VALUE_DEPTH_MAX;

use super::calls::{MEMORY_BYTES, OUTPUT_BYTES};
use super::entry::Entry;
use super::section::Section;
use crate::adapters::tools::outgoing::OutgoingHost;

/// Connections at once, unless the configuration says otherwise.
pub const CONNECTIONS_MAX: usize = 25_000;

/// How much of everything. Sizes are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitsConfig {
    /// Largest value that an expression or a function may give, as JSON.
    pub value_bytes_max: usize,
    /// How deep a value may nest, whoever gives it.
    pub value_depth_max: usize,
    /// Interruptions by a crash after which a step fails.
    pub crash_attempts: u32,
    /// Ends of the process in the middle of an evaluation after which its execution fails; 0: never.
    pub quarantine_after: u32,
    /// Events that wait for one slow reader.
    pub subscriber_queue: usize,
    /// Bytes of events that wait for one slow reader.
    pub subscriber_queue_bytes: usize,
    /// Bytes that wait for all slow clients together.
    pub subscribers_bytes_max: usize,
    /// How long a reader may take nothing before its connection is cut.
    pub subscriber_stall: Duration,
    /// How long an idempotency key is kept.
    pub idempotency_ttl: Duration,
    /// Executions in memory at once.
    pub executions_live_max: usize,
    /// Bytes of memory that executions may hold, by an estimate; none: a third of what the process
    /// may use.
    pub executions_memory_max: Option<u64>,
    /// Events of one execution.
    pub events_max: u64,
    /// Bytes of JSON of all values of one execution.
    pub execution_bytes_max: u64,
    /// Threads that run executions; 0: half the cores.
    pub arbiters: usize,
    /// Times that the actor of an execution is rebuilt after a panic of its own, in a minute.
    pub actor_restarts_max: u32,
    /// Largest frame that a WebSocket client may send.
    pub websocket_frame_bytes_max: usize,
    /// Frames of one message of a WebSocket client, and control frames from one sign of life to the
    /// next.
    pub websocket_fragments_max: usize,
    /// Open connections, over all workers; none: as many as the descriptors allow, up to
    /// [`CONNECTIONS_MAX`].
    pub connections_max: Option<usize>,
    /// Open connections from one address; none: half of them.
    pub connections_per_address_max: Option<usize>,
    /// Open event streams and WebSockets; none: three quarters of the connections.
    pub streams_max: Option<usize>,
    /// Open event streams and WebSockets from one address; none: half of them.
    pub streams_per_address_max: Option<usize>,
    /// Executions and agents above one another, from the first to the last sub-workflow.
    pub child_depth_max: u32,
    /// Generations at once.
    pub generations_live_max: usize,
    /// Times that a model is asked again for an object that does not meet its schema.
    pub object_repairs: u32,
    /// How long an attempt of a step that calls a server or runs a program may take, when the step
    /// has no time limit of its own.
    pub call_timeout: Duration,
    /// Largest request of a step or a tool: its URL, headers and body.
    pub http_request_bytes_max: usize,
    /// Largest answer to a step.
    pub http_answer_bytes_max: usize,
    /// Programs at once; others wait for their turn.
    pub commands_max: usize,
    /// Memory of each process of a program that names no bound of its own.
    pub command_memory_bytes_max: u64,
    /// What a program may print that names no bound of its own.
    pub command_output_bytes_max: u64,
    /// How long a call of a tool without a time limit of its own may take.
    pub tool_timeout: Duration,
    /// Largest result of a tool, as JSON.
    pub tool_result_bytes_max: usize,
    /// Turns of one generation, whatever its caller or its agent says.
    pub generation_steps_max: u32,
    /// All that the model of one generation may say, and all that its tools may give.
    pub generation_bytes_max: usize,
    /// Facts of executions and turns of generations that one trace shows.
    pub trace_spans_max: usize,
    /// How long the evaluation of one expression, template or schema may take.
    pub expression_time_max: Duration,
    /// How often running executions are looked after; zero: never.
    pub watchdog_every: Duration,
    /// Pause between signs of life on an idle stream or WebSocket.
    pub heartbeat: Duration,
    /// Hosts that calls may go to although data chose them and they are not public.
    pub outgoing_hosts: Vec<OutgoingHost>,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let runtime = RuntimeLimits::default();
        Self {
            value_bytes_max: runtime.value_bytes_max,
            value_depth_max: runtime.value_depth_max,
            crash_attempts: runtime.crash_attempts,
            quarantine_after: runtime.quarantine_after,
            subscriber_queue: 8192,
            subscriber_queue_bytes: 8 * 1024 * 1024,
            subscribers_bytes_max: 256 * 1024 * 1024,
            subscriber_stall: runtime.subscriber_stall,
            idempotency_ttl: runtime.idempotency_ttl,
            executions_live_max: runtime.executions_live_max,
            executions_memory_max: None,
            events_max: runtime.events_max,
            execution_bytes_max: runtime.execution_bytes_max,
            arbiters: 0,
            actor_restarts_max: runtime.actor_restarts_max,
            websocket_frame_bytes_max: 64 * 1024,
            websocket_fragments_max: 1024,
            connections_max: None,
            connections_per_address_max: None,
            streams_max: None,
            streams_per_address_max: None,
            child_depth_max: runtime.child_depth_max,
            generations_live_max: runtime.generations_live_max,
            object_repairs: runtime.object_repairs,
            call_timeout: runtime.call_timeout,
            http_request_bytes_max: 1024 * 1024,
            http_answer_bytes_max: 1024 * 1024,
            commands_max: 32,
            command_memory_bytes_max: 512 * 1024 * 1024,
            command_output_bytes_max: 1024 * 1024,
            tool_timeout: runtime.tool_timeout,
            tool_result_bytes_max: runtime.tool_result_bytes_max,
            generation_steps_max: runtime.generation_steps_max,
            generation_bytes_max: runtime.generation_bytes_max,
            trace_spans_max: runtime.trace_spans_max,
            expression_time_max: runtime.expression_time_max,
            watchdog_every: runtime.watchdog_every,
            heartbeat: Duration::from_secs(15),
            outgoing_hosts: Vec::new(),
        }
    }
}

/// How deep a value may be allowed to nest.
const DEPTHS: RangeInclusive<i64> = 8..=VALUE_DEPTH_MAX as i64;
/// Most of what is counted in bytes.
const BYTES_MAX: i64 = 1 << 30;
/// Memory of executions: from 1 MiB to 64 TiB.
const EXECUTIONS_MEMORY: RangeInclusive<i64> = 1 << 20..=1 << 46;
/// Most of what is counted otherwise.
const COUNT_MAX: i64 = 1_000_000_000;

impl LimitsConfig {
    pub(crate) fn read(section: Section<'_>) -> Self {
        let or = Self::default();
        let frame = or.websocket_frame_bytes_max;
        let bytes = |key, default| section.integer(key, 1..=BYTES_MAX, default);
        let count = |key, default| section.integer(key, 1..=COUNT_MAX, default);
        let count_if_any = |key| count_if_any(&section, key);
        let limits = Self {
            value_bytes_max: bytes("value_bytes_max", or.value_bytes_max),
            value_depth_max: section.integer("value_depth_max", DEPTHS, or.value_depth_max),
            crash_attempts: section.integer("crash_attempts", 1..=1000, or.crash_attempts),
            quarantine_after: section.integer("quarantine_after", 0..=1000, or.quarantine_after),
            subscriber_queue: count("subscriber_queue", or.subscriber_queue),
            subscriber_queue_bytes: bytes("subscriber_queue_bytes", or.subscriber_queue_bytes),
            subscribers_bytes_max: bytes("subscribers_bytes_max", or.subscribers_bytes_max),
            subscriber_stall: section.duration("subscriber_stall", or.subscriber_stall),
            idempotency_ttl: section.duration("idempotency_ttl", or.idempotency_ttl),
            executions_live_max: count("executions_live_max", or.executions_live_max),
            executions_memory_max: executions_memory_max(&section),
            events_max: section.integer("events_max", 1..=COUNT_MAX, or.events_max),
            execution_bytes_max: section.integer(
                "execution_bytes_max",
                1..=COUNT_MAX,
                or.execution_bytes_max,
            ),
            arbiters: section.integer("arbiters", 0..=1024, or.arbiters),
            actor_restarts_max: section.integer(
                "actor_restarts_max",
                0..=1000,
                or.actor_restarts_max,
            ),
            websocket_frame_bytes_max: bytes("websocket_frame_bytes_max", frame),
            websocket_fragments_max: count("websocket_fragments_max", or.websocket_fragments_max),
            connections_max: count_if_any("connections_max"),
            connections_per_address_max: count_if_any("connections_per_address_max"),
            streams_max: count_if_any("streams_max"),
            streams_per_address_max: count_if_any("streams_per_address_max"),
            child_depth_max: section.integer("child_depth_max", 0..=1000, or.child_depth_max),
            generations_live_max: count("generations_live_max", or.generations_live_max),
            object_repairs: section.integer("object_repairs", 0..=10, or.object_repairs),
            call_timeout: section.duration("call_timeout", or.call_timeout),
            http_request_bytes_max: bytes("http_request_bytes_max", or.http_request_bytes_max),
            http_answer_bytes_max: bytes("http_answer_bytes_max", or.http_answer_bytes_max),
            commands_max: section.integer("commands_max", 1..=10_000, or.commands_max),
            command_memory_bytes_max: section.integer(
                "command_memory_bytes_max",
                MEMORY_BYTES,
                or.command_memory_bytes_max,
            ),
            command_output_bytes_max: section.integer(
                "command_output_bytes_max",
                OUTPUT_BYTES,
                or.command_output_bytes_max,
            ),
            tool_timeout: section.duration("tool_timeout", or.tool_timeout),
            tool_result_bytes_max: bytes("tool_result_bytes_max", or.tool_result_bytes_max),
            generation_steps_max: section.integer(
                "generation_steps_max",
                1..=1000,
                or.generation_steps_max,
            ),
            generation_bytes_max: bytes("generation_bytes_max", or.generation_bytes_max),
            trace_spans_max: section.integer("trace_spans_max", 1..=1_000_000, or.trace_spans_max),
            expression_time_max: section.duration("expression_time_max", or.expression_time_max),
            watchdog_every: watchdog_every(&section, or.watchdog_every),
            heartbeat: section.duration("heartbeat", or.heartbeat),
            outgoing_hosts: outgoing_hosts(&section),
        };
        section.close();
        limits
    }
}

fn count_if_any(section: &Section<'_>, key: &'static str) -> Option<usize> {
    let found = section.get(key)?.integer(1..=COUNT_MAX)?;
    usize::try_from(found).ok()
}

fn executions_memory_max(section: &Section<'_>) -> Option<u64> {
    let found = section.get("executions_memory_max")?.integer(EXECUTIONS_MEMORY)?;
    u64::try_from(found).ok()
}

/// Zero turns it off.
fn watchdog_every(section: &Section<'_>, default: Duration) -> Duration {
    section.get("watchdog_every").and_then(|entry| entry.pause()).unwrap_or(default)
}

fn outgoing_hosts(section: &Section<'_>) -> Vec<OutgoingHost> {
    let items = section.get("outgoing_hosts").and_then(|entry| entry.items()).unwrap_or_default();
    let host = |item: Entry<'_>| match item.text()?.parse::<OutgoingHost>() {
        Ok(host) => Some(host),
        Err(refusal) => {
            item.place.refuse(refusal.to_string());
            None
        }
    };
    items.into_iter().filter_map(host).collect()
}
