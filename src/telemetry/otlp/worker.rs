//! The thread that sends: one loop for each signal, so that a slow one holds up itself alone.

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
use crate::telemetry::logs::off_the_record;

use super::answer::Retry;
use super::courier::Courier;
use super::queue::Queue;
use super::reporter::Reporter;
use super::{Gather, logs, metrics, spans};

/// How long the first message of a batch waits for others.
const LINGER: Duration = Duration::from_secs(1);
/// Largest batch in bytes, unless it is a single message: what collectors take by default is more.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What the thread is given.
pub(super) struct Work {
    pub(super) settings: ExporterSettings,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) gather: Option<Gather>,
    pub(super) spans: Option<Arc<Queue<trace_proto::Span>>>,
    pub(super) logs: Option<Arc<Queue<logs_proto::LogRecord>>>,
    pub(super) stats: ExporterStats,
    pub(super) stop: watch::Receiver<bool>,
}

/// Starts it. It ends once it was told to stop and has sent what was left.
pub(super) fn start(work: Work) -> io::Result<oneshot::Receiver<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (end, ended) = oneshot::channel();
    std::thread::Builder::new().name("greenroom-otlp".to_owned()).spawn(move || {
        // what is logged here would be exported, and logged again
        off_the_record(|| runtime.block_on(work.done()));
        // nobody may be there to hear it
        let _ = end.send(());
        // a look-up of a name may still hang on a thread of its own
        runtime.shutdown_background();
    })?;
    Ok(ended)
}

impl Work {
    async fn done(self) {
        let Self { settings, clock, gather, spans, logs, stats, stop } = self;
        let ExporterSettings { traces, metrics, logs: logs_target, resource, .. } = settings;
        let mut reporter = Reporter::new(stats.clone());
        let courier = |what, target: Option<Target>, stats: &Arc<SignalStats>| {
            let made =
                Courier::new(what, target?, Arc::clone(stats), Retry::default(), stop.clone());
            made.inspect_err(|error| log::error!("{what} cannot be exported: {error}")).ok()
        };
        let batch = settings.batch;
        let resource = &resource;
        let of_spans =
            courier("spans", traces, &stats.traces).zip(spans).map(|(courier, queue)| {
                let pump = Pump { courier, queue, batch, resource, stop: stop.clone() };
                pump.run(spans::request)
            });
        let of_logs =
            courier("log records", logs_target, &stats.logs).zip(logs).map(|(courier, queue)| {
                let pump = Pump { courier, queue, batch, resource, stop: stop.clone() };
                pump.run(logs::request)
            });
        let of_metrics =
            courier("data points", metrics, &stats.metrics).zip(gather).map(|(courier, gather)| {
                let (interval, stop) = (settings.interval, stop.clone());
                Sampling { courier, gather, clock, interval, resource, stop }.run()
            });
        let all = async {
            futures_util::join!(maybe(of_spans), maybe(of_logs), maybe(of_metrics));
        };
        tokio::select! {
            () = all => {}
            () = reporter.run() => {}
        }
        reporter.report();
    }
}

async fn maybe(work: Option<impl Future<Output = ()>>) {
    if let Some(work) = work {
        work.await;
    }
}

/// Empties a queue, batch by batch.
struct Pump<'a, T> {
    courier: Courier,
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
                () = self.queue.filled(LINGER) => false,
                _ = self.stop.wait_for(|is_stopping| *is_stopping) => true,
            };
            loop {
                let taken = self.queue.take(self.batch, BATCH_BYTES_MAX);
                let count = taken.len();
                if count == 0 {
                    break;
                }
                self.courier.deliver(&request(self.resource, taken), count).await;
                if !is_last && self.queue.len() < self.batch {
                    break;
                }
            }
        }
    }
}

/// Sends what is counted and measured, again and again.
struct Sampling<'a> {
    courier: Courier,
    gather: Gather,
    clock: Arc<dyn Clock>,
    interval: Duration,
    resource: &'a BTreeMap<String, String>,
    stop: watch::Receiver<bool>,
}

impl Sampling<'_> {
    async fn run(mut self) {
        let start = self.clock.now();
        let mut ticks = tokio::time::interval(self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // the first one is at once, when there is nothing to tell yet
        ticks.tick().await;
        let mut is_last = false;
        while !is_last {
            is_last = tokio::select! {
                _ = ticks.tick() => false,
                _ = self.stop.wait_for(|is_stopping| *is_stopping) => true,
            };
            let span = metrics::Span { start, now: self.clock.now() };
            let families = (self.gather)();
            let metrics: Vec<_> =
                families.iter().filter_map(|family| metrics::written(family, span)).collect();
            let points = metrics.iter().map(metrics::points).sum();
            if points > 0 {
                self.courier.deliver(&metrics::request(self.resource, metrics), points).await;
            }
        }
    }
}
