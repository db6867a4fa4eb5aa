//! Export of traces, metrics and logs to a collector over OTLP (http/protobuf).
//!
//! Spans and records are encoded at once and put into a bounded queue, which a separate thread
//! sends. Callers never wait: what does not fit is counted and dropped.
//!
//! Records logged by these modules, or on that thread by libraries, are not exported: each would
//! cause another.

mod answer;
mod logs;
mod metrics;
mod queue;
mod sender;
mod spans;
mod stats_log;
mod values;
mod worker;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use greenroom_actors::observe::log_record::LogRecord;
use greenroom_actors::observe::span::{SpanEvent, SpanPhase};
use greenroom_actors::ports::clock::Clock;
use opentelemetry_proto::tonic::logs::v1 as logs_proto;
use opentelemetry_proto::tonic::trace::v1 as trace_proto;
use prometheus::proto::MetricFamily;
use tokio::sync::{oneshot, watch};

use crate::telemetry::export::{ExporterSettings, ExporterStats, Sampler};

use self::queue::Queue;

/// Prefix of the log targets of these modules.
const OWN_TARGET: &str = "greenroom::telemetry::otlp";

/// Gathers all metrics.
pub type Gather = Box<dyn Fn() -> BoxFuture<'static, Vec<MetricFamily>> + Send>;

/// The exporter. Clones are cheap and share one thread.
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
    /// Longest timeout of the targets.
    finish_timeout: Duration,
}

impl Exporter {
    /// Starts the thread that sends. Without `gather`, metrics are not exported.
    pub fn start(
        settings: ExporterSettings,
        clock: Arc<dyn Clock>,
        gather: Option<Gather>,
    ) -> io::Result<Self> {
        let ExporterSettings { sampler, content, .. } = settings;
        let (count, bytes, batch) = (settings.queue, settings.queue_bytes, settings.batch);
        let spans = settings.traces.as_ref().map(|_| Arc::new(Queue::new(count, bytes, batch)));
        let logs = settings.logs.as_ref().map(|_| Arc::new(Queue::new(count, bytes, batch)));
        let targets = [&settings.traces, &settings.metrics, &settings.logs].into_iter().flatten();
        let finish_timeout = targets.map(|target| target.timeout).max().unwrap_or_default();
        let stats = ExporterStats::default();
        let (stopping, stop) = watch::channel(false);
        let work = worker::Work {
            settings,
            clock,
            gather,
            spans: spans.clone(),
            logs: logs.clone(),
            stats: stats.clone(),
            stop,
        };
        let ended = Mutex::new(Some(worker::start(work)?));
        let shared =
            Shared { spans, logs, stats, sampler, content, stopping, ended, finish_timeout };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns true if spans are exported.
    pub fn exports_spans(&self) -> bool {
        self.shared.spans.is_some()
    }

    /// Returns true if log records are exported.
    pub fn exports_logs(&self) -> bool {
        self.shared.logs.is_some()
    }

    /// Queues the spans that have ended. `missed` is the number of spans dropped on the way here.
    pub fn take_spans(&self, events: &[SpanEvent], missed: u64) {
        let Some(queue) = &self.shared.spans else { return };
        let ended = events.iter().filter(|event| event.phase == SpanPhase::Ended);
        let mut dropped = missed;
        for SpanEvent { span, .. } in ended.filter(|it| self.shared.sampler.takes(it.span.trace()))
        {
            let encode = || spans::encode(span, self.shared.content);
            dropped += u64::from(!queue.push_with(encode));
        }
        self.shared.stats.traces.add_dropped(dropped);
    }

    /// Queues log records except those caused by the export. Called by the thread that stores them.
    pub fn take_logs(&self, records: &[Arc<LogRecord>]) {
        let Some(queue) = &self.shared.logs else { return };
        let mut dropped = 0;
        for record in records.iter().filter(|record| !record.target.starts_with(OWN_TARGET)) {
            dropped += u64::from(!queue.push_with(|| logs::encode(record)));
        }
        self.shared.stats.logs.add_dropped(dropped);
    }

    /// Returns the counters of the export.
    pub fn stats(&self) -> &ExporterStats {
        &self.shared.stats
    }

    /// Sends the queued items, each at most once and within the timeout of one request, and ends
    /// the thread.
    pub async fn finish(&self) {
        self.shared.stopping.send_replace(true);
        let ended = self.shared.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(ended) = ended else { return };
        let timeout = self.shared.finish_timeout;
        if tokio::time::timeout(timeout, ended).await.is_err() {
            log::warn!(
                "the remaining telemetry is lost: the collector did not accept it within \
                 {timeout:?}"
            );
        }
    }
}

impl std::fmt::Debug for Exporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exporter").field("stats", &self.shared.stats).finish_non_exhaustive()
    }
}
