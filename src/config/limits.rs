//! `[limits]`: the bounds of the server.

use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::domain::nesting::VALUE_DEPTH_MAX;

use super::calls::{MEMORY_BYTES, OUTPUT_BYTES};
use super::entry::Entry;
use super::keys::{Keys as _, Takes, Value, section};
use super::section::Section;
use crate::adapters::tools::outgoing::OutgoingHost;

/// Connections at once, unless the configuration says otherwise.
pub const CONNECTIONS_MAX: usize = 25_000;

const BYTES: Takes = Takes::Bytes(1..=1 << 30);
const COUNT: Takes = Takes::Integer(1..=1_000_000_000);

section! {
    /// The bounds of the server.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct LimitsConfig {
        /// Memory that the values of executions in memory may take together, by an estimate; beyond
        /// it, new executions, and resumes of executions that are not in memory, are refused (503).
        /// Default: a third of the memory of the machine or of the control group.
        executions_memory_max: Option<u64> = None, Takes::Bytes(1 << 20..=1 << 46);
        /// Threads that run executions; 0: half the cores.
        arbiters: usize = 0, Takes::Integer(0..=1024);
        /// Events that may wait for one slow subscriber; beyond it, the subscriber misses some.
        subscriber_queue: usize = 8192, COUNT;
        /// Bytes of the events that may wait for one slow subscriber.
        subscriber_queue_bytes: usize = 8 * 1024 * 1024, BYTES;
        /// Bytes that may wait for all slow clients together: one half for streams and WebSockets,
        /// the other one for answers of more than 64 KiB. When a half is used up, new streams, or
        /// such answers, are refused (503).
        subscribers_bytes_max: usize = 256 * 1024 * 1024, BYTES;
        /// Largest frame that a WebSocket client may send.
        websocket_frame_bytes_max: usize = 64 * 1024, BYTES;
        /// Frames of one message of a WebSocket client, and its control frames from one `heartbeat`
        /// to the next.
        websocket_fragments_max: usize = 1024, COUNT;
        /// Open connections, over all workers; beyond it, connections are answered 503 and closed.
        /// Default: 25000, or as many as the limit of open files allows.
        connections_max: Option<usize> = None, COUNT;
        /// Open connections from one address (IPv6: from one /64). Default: half of
        /// `connections_max`.
        connections_per_address_max: Option<usize> = None, COUNT;
        /// Open event streams, streams of generations and WebSockets; beyond it, new ones are
        /// refused (503). Default: three quarters of `connections_max`.
        streams_max: Option<usize> = None, COUNT;
        /// Open streams and WebSockets from one address. Default: half of `streams_max`.
        streams_per_address_max: Option<usize> = None, COUNT;
        /// Pause between heartbeats on an idle stream or WebSocket.
        heartbeat: Duration = Duration::from_secs(15), Takes::Duration;
        /// Largest request of a step or a tool to another server: URL, headers and body.
        http_request_bytes_max: usize = 1024 * 1024, BYTES;
        /// Largest answer of another server to a step.
        http_answer_bytes_max: usize = 1024 * 1024, BYTES;
        /// Programs of steps and tools at once; others wait, which counts as their time.
        commands_max: usize = 32, Takes::Integer(1..=10_000);
        /// Memory of each process of a program that has no bound of its own.
        command_memory_bytes_max: u64 = 512 * 1024 * 1024, Takes::Bytes(MEMORY_BYTES);
        /// Output of a program that has no bound of its own.
        command_output_bytes_max: u64 = 1024 * 1024, Takes::Bytes(OUTPUT_BYTES);
        /// Hosts that calls of steps and tools may go to although data chose them and they are not
        /// public: names, addresses, or ends of names as in `*.corp`.
        outgoing_hosts: Vec<OutgoingHost> = Vec::new(), Takes::Own("an array of hosts");
    }
    and {
        /// The bounds of the runtime. Those that other keys set (`arbiters`,
        /// `executions_memory_max`, `passivate_after` of `[store]`, `[retention]`) are replaced by
        /// [`Config::runtime_limits`](super::Config::runtime_limits).
        runtime: RuntimeLimits;
    }
}

section! {
    impl RuntimeLimits {
        /// Largest value that an expression or a function may return, as JSON.
        value_bytes_max: machine.value_bytes_max, BYTES;
        /// Deepest nesting of a value: arrays and objects inside one another.
        value_depth_max: machine.value_depth_max, Takes::Integer(8..=VALUE_DEPTH_MAX as i64);
        /// Attempts of a step that crashes may interrupt; with the last of them the step fails.
        crash_attempts: machine.crash_attempts, Takes::Integer(1..=1000);
        /// Ends of the process at the same point of an evaluation after which the execution is set
        /// aside: it fails. 0: never.
        quarantine_after: quarantine_after, Takes::Integer(0..=1000);
        /// How long a subscriber may read nothing, although there is more for it, before its stream
        /// is disconnected.
        subscriber_stall_timeout: subscriber_stall_timeout, Takes::Duration,
            formerly "subscriber_stall";
        /// How long an `Idempotency-Key` is stored.
        idempotency_ttl: idempotency_ttl, Takes::Duration;
        /// Executions in memory at once; beyond it, new ones are refused (503).
        executions_live_max: executions_live_max, COUNT;
        /// Events of one execution; beyond it, the execution fails.
        events_max: machine.events_max, COUNT;
        /// JSON of all values of one execution; beyond it, the execution fails.
        execution_bytes_max: machine.execution_bytes_max, Takes::Bytes(1..=1_000_000_000);
        /// Restarts of an execution after panics of its actor, within a minute.
        actor_restarts_max: actor_restarts_max, Takes::Integer(0..=1000);
        /// Nesting of sub-workflows, and of agents that agents call; a deeper call fails.
        child_depth_max: child_depth_max, Takes::Integer(0..=1000);
        /// Generations of agents at once; beyond it, new ones are refused (503).
        generations_live_max: generations_live_max, COUNT;
        /// Times that a model is asked again for an object that does not match its schema.
        object_repairs: object_repairs, Takes::Integer(0..=10);
        /// Time limit of an attempt of a step that calls a server or runs a program and has no
        /// `timeout` of its own.
        call_timeout: call_timeout, Takes::Duration;
        /// Time limit of a call of a tool that has no `timeout` of its own.
        tool_timeout: tool_timeout, Takes::Duration;
        /// Largest result of a tool, as JSON.
        tool_result_bytes_max: tool_result_bytes_max, BYTES;
        /// Turns of one generation, whatever its caller or its agent asks for.
        generation_steps_max: generation_steps_max, Takes::Integer(1..=1000);
        /// Output of the model of one generation over all turns, and results of its tools.
        generation_bytes_max: generation_bytes_max, BYTES;
        /// Facts of executions and turns of generations that one trace, or one page of the list of
        /// traces, contains; the rest is left out.
        trace_spans_max: trace_spans_max, Takes::Integer(1..=1_000_000);
        /// Time limit of the evaluation of one expression, template or schema.
        expression_time_max: expression_time_max, Takes::Duration;
        /// How often running executions are checked for progress; `"0s"`: never.
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
            Err(refusal) => {
                item.place.refuse(refusal.to_string());
                None
            }
        };
        Some(entry.items()?.into_iter().filter_map(host).collect())
    }
}
