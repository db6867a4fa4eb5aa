//! The thread that sends: one loop per signal, so that a slow one does not delay the others.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::ports::clock::Clock;
use opentelemetry_proto::tonic::logs::v1 as logs_proto;
use opentelemetry_proto::tonic::trace::v1 as trace_proto;
use prost::Message;
use tokio::sync::{oneshot, watch};
use tokio::time::MissedTickBehavior;

use crate::telemetry::export::{ExporterSettings, ExporterStats, SignalStats, Target};
use crate::telemetry::logs::without_recording;

use super::answer::Retry;
use super::queue::Queue;
use super::sender::Sender;
use super::stats_log::StatsLog;
use super::{Gather, logs, metrics, spans};

/// Maximum time that the first message of a batch waits for others.
const LINGER: Duration = Duration::from_secs(1);
/// Maximum size of a batch of several messages; less than collectors accept by default.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Inputs of the thread.
pub(super) struct Work {
    pub(super) settings: ExporterSettings,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) gather: Option<Gather>,
    pub(super) spans: Option<Arc<Queue<trace_proto::Span>>>,
    pub(super) logs: Option<Arc<Queue<logs_proto::LogRecord>>>,
    pub(super) stats: ExporterStats,
    pub(super) stop: watch::Receiver<bool>,
}

/// Starts the thread. It ends once `stop` is true and the remaining items are sent.
pub(super) fn start(work: Work) -> io::Result<oneshot::Receiver<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (end, ended) = oneshot::channel();
    std::thread::Builder::new().name("greenroom-otlp".to_owned()).spawn(move || {
        // a record of the export would be exported and cause another
        without_recording(|| runtime.block_on(work.run()));
        // fails if the exporter is dropped or has timed out
        let _ = end.send(());
        // a DNS lookup may still block one of the runtime's threads
        runtime.shutdown_background();
    })?;
    Ok(ended)
}

impl Work {
    async fn run(self) {
        let Self { settings, clock, gather, spans, logs, stats, stop } = self;
        let ExporterSettings { traces, metrics, logs: logs_target, resource, .. } = settings;
        let mut stats_log = StatsLog::new(stats.clone());
        let sender = |what, target: Option<Target>, stats: &Arc<SignalStats>| {
            let made =
                Sender::new(what, target?, Arc::clone(stats), Retry::default(), stop.clone());
            made.inspect_err(|error| log::error!("cannot export {what}: {error}")).ok()
        };
        let batch = settings.batch;
        let resource = &resource;
        let of_spans = sender("spans", traces, &stats.traces).zip(spans).map(|(sender, queue)| {
            let pump = Pump { sender, queue, batch, resource, stop: stop.clone() };
            pump.run(spans::request)
        });
        let of_logs =
            sender("log records", logs_target, &stats.logs).zip(logs).map(|(sender, queue)| {
                let pump = Pump { sender, queue, batch, resource, stop: stop.clone() };
                pump.run(logs::request)
            });
        let of_metrics =
            sender("data points", metrics, &stats.metrics).zip(gather).map(|(sender, gather)| {
                let (interval, stop) = (settings.interval, stop.clone());
                MetricsLoop { sender, gather, clock, interval, resource, stop }.run()
            });
        let all = async {
            futures_util::join!(maybe(of_spans), maybe(of_logs), maybe(of_metrics));
        };
        tokio::select! {
            () = all => {}
            () = stats_log.run() => {}
        }
        stats_log.report();
    }
}

async fn maybe(work: Option<impl Future<Output = ()>>) {
    if let Some(work) = work {
        work.await;
    }
}

/// Sends the messages of a queue in batches.
struct Pump<'a, T> {
    sender: Sender,
    queue: Arc<Queue<T>>,
    batch: usize,
    resource: &'a BTreeMap<String, String>,
    stop: watch::Receiver<bool>,
}

impl<T: Message> Pump<'_, T> {
    async fn run<R: Message>(mut self, request: fn(&BTreeMap<String, String>, Vec<T>) -> R) {
        let mut is_last = false;
        while !is_last {
            is_last = tokio::select! {
                () = self.queue.wait_for_batch(LINGER) => false,
                _ = self.stop.wait_for(|is_stopping| *is_stopping) => true,
            };
            loop {
                let taken = self.queue.take(self.batch, BATCH_BYTES_MAX);
                let count = taken.len();
                if count == 0 {
                    break;
                }
                self.sender.deliver(&request(self.resource, taken), count).await;
                if !is_last && self.queue.len() < self.batch {
                    break;
                }
            }
        }
    }
}

/// Sends all metrics at regular intervals.
struct MetricsLoop<'a> {
    sender: Sender,
    gather: Gather,
    clock: Arc<dyn Clock>,
    interval: Duration,
    resource: &'a BTreeMap<String, String>,
    stop: watch::Receiver<bool>,
}

impl MetricsLoop<'_> {
    async fn run(mut self) {
        let start = self.clock.now();
        let mut ticks = tokio::time::interval(self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // the first tick is immediate, when there is nothing to export yet
        ticks.tick().await;
        let mut is_last = false;
        while !is_last {
            is_last = tokio::select! {
                _ = ticks.tick() => false,
                _ = self.stop.wait_for(|is_stopping| *is_stopping) => true,
            };
            let span = metrics::Span { start, now: self.clock.now() };
            let families = (self.gather)().await;
            let metrics: Vec<_> =
                families.iter().filter_map(|family| metrics::encode(family, span)).collect();
            let points = metrics.iter().map(metrics::points).sum();
            if points > 0 {
                self.sender.deliver(&metrics::request(self.resource, metrics), points).await;
            }
        }
    }
}
