//! Traces, metrics and logs to a collector over OTLP (http/protobuf).
//!
//! What is exported is written as a message as soon as it is known and waits in a bounded queue; a
//! thread of its own sends it. Nobody waits for that thread: what finds no room is counted.
//!
//! What is logged here, or on that thread by the libraries it uses, is not exported: each record
//! would make a further one.

mod answer;
mod courier;
mod logs;
mod metrics;
mod queue;
mod reporter;
mod spans;
mod values;
mod worker;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use greenroom_actors::observe::log_record::LogRecord;
use greenroom_actors::observe::span::{SpanEvent, SpanPhase};
use greenroom_actors::ports::clock::Clock;
use opentelemetry_proto::tonic::logs::v1 as logs_proto;
use opentelemetry_proto::tonic::trace::v1 as trace_proto;
use prometheus::proto::MetricFamily;
use tokio::sync::{oneshot, watch};

use crate::telemetry::export::{ExporterSettings, ExporterStats, Sampler};

use self::queue::Queue;

/// What begins the name of every module here, and so the target of what it logs.
const OWN_TARGET: &str = "greenroom::telemetry::otlp";

/// Asks for everything that is counted and measured.
pub type Gather = Box<dyn Fn() -> Vec<MetricFamily> + Send>;

/// Sends what it is told. Cheap to clone; all clones are the same exporter.
#[derive(Clone)]
pub struct Exporter {
    shared: Arc<Shared>,
}

struct Shared {
    spans: Option<Arc<Queue<trace_proto::Span>>>,
    logs: Option<Arc<Queue<logs_proto::LogRecord>>>,
    stats: ExporterStats,
    sampler: Sampler,
    content: bool,
    stopping: watch::Sender<bool>,
    ended: Mutex<Option<oneshot::Receiver<()>>>,
    patience: Duration,
}

impl Exporter {
    /// Starts the thread that sends. Without `gather` there are no metrics to send.
    pub fn start(
        settings: ExporterSettings,
        clock: Arc<dyn Clock>,
        gather: Option<Gather>,
    ) -> io::Result<Self> {
        let ExporterSettings { sampler, content, .. } = settings;
        let (queue, queue_bytes) = (settings.queue, settings.queue_bytes);
        let spans = settings
            .traces
            .is_some()
            .then(|| Arc::new(Queue::new(queue, queue_bytes, settings.batch)));
        let logs = settings
            .logs
            .is_some()
            .then(|| Arc::new(Queue::new(queue, queue_bytes, settings.batch)));
        let targets = [&settings.traces, &settings.metrics, &settings.logs].into_iter().flatten();
        let patience = targets.map(|target| target.timeout).max().unwrap_or_default();
        let stats = ExporterStats::default();
        let (stopping, stop) = watch::channel(false);
        let (spans_out, logs_out) = (spans.clone(), logs.clone());
        let work = worker::Work {
            settings,
            clock,
            gather,
            spans: spans_out,
            logs: logs_out,
            stats: stats.clone(),
            stop,
        };
        let ended = Mutex::new(Some(worker::start(work)?));
        let shared = Shared { spans, logs, stats, sampler, content, stopping, ended, patience };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Whether spans are exported.
    pub fn wants_spans(&self) -> bool {
        self.shared.spans.is_some()
    }

    /// Whether log records are exported.
    pub fn wants_logs(&self) -> bool {
        self.shared.logs.is_some()
    }

    /// Takes the spans that have ended. `missed` ones never came this far.
    pub fn take_spans(&self, events: &[SpanEvent], missed: u64) {
        let Some(queue) = &self.shared.spans else { return };
        let ended = events.iter().filter(|event| event.phase == SpanPhase::Ended);
        let mut dropped = missed;
        for SpanEvent { span, .. } in ended.filter(|it| self.shared.sampler.takes(it.span.trace()))
        {
            let written = || spans::written(span, self.shared.content);
            dropped += u64::from(!queue.push_with(written));
        }
        self.shared.stats.traces.add_dropped(dropped);
    }

    /// Takes log records, but for those that exporting itself has made. Called by the thread that
    /// keeps them.
    pub fn take_logs(&self, records: &[Arc<LogRecord>]) {
        let Some(queue) = &self.shared.logs else { return };
        let mut dropped = 0;
        for record in records.iter().filter(|record| !record.target.starts_with(OWN_TARGET)) {
            dropped += u64::from(!queue.push_with(|| logs::written(record)));
        }
        self.shared.stats.logs.add_dropped(dropped);
    }

    /// What was sent, dropped and refused up to now.
    pub fn stats(&self) -> &ExporterStats {
        &self.shared.stats
    }

    /// Sends what waits, once and no longer than one request may take, and ends the thread.
    pub async fn finish(&self) {
        self.shared.stopping.send_replace(true);
        let ended = self.shared.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(ended) = ended else { return };
        if tokio::time::timeout(self.shared.patience, ended).await.is_err() {
            log::warn!("the collector did not take what was left in time; it is lost");
        }
    }
}

impl std::fmt::Debug for Exporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exporter").field("stats", &self.shared.stats).finish_non_exhaustive()
    }
}
