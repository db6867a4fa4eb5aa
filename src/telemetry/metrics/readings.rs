//! Metrics that are read at each scrape; nothing counts them as they change.

use std::sync::atomic::Ordering;
use std::time::Duration;

use greenroom_actors::observe::log_record::LogLevel;
use greenroom_actors::runtime::RuntimeStats;
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};

use crate::reload::ReloadStatus;
use crate::telemetry::export::{ExporterStats, SignalCounts};
use crate::telemetry::logs;
use crate::telemetry::metrics::cluster::of_cluster;
use crate::telemetry::metrics::mcp::of_servers;
use crate::telemetry::metrics::requests::RequestMeter;
use crate::telemetry::metrics::stored::Stored;
use crate::telemetry::sources::{HeldBytes, Sources, StoreReading};

impl Sources {
    /// Returns all readings, unsorted.
    pub(super) fn read(&self, requests: &RequestMeter, stored: &Stored) -> Vec<MetricFamily> {
        let stats = self.runtime.stats();
        let mut families = of_executions(&stats);
        families.extend(of_runtime(&stats));
        families.extend(stored.families(&self.runtime));
        families.push(dropped(&stats, requests.dropped().get()));
        families.extend(of_held(requests.held()));
        families.extend(self.store.iter().flat_map(|read| of_store(read())));
        families.extend(of_logs());
        families.extend(of_configuration(&self.reload_status));
        if let Some(stats) = self.runtime.cluster_stats() {
            let links = self.links.as_ref().map(|read| read());
            families.extend(of_cluster(&stats, links.as_deref()));
        }
        families.extend(self.servers.iter().flat_map(|servers| of_servers(&servers.statuses())));
        families.extend(self.exporter.as_ref().map(of_exporter));
        families.push(build_info());
        families
    }
}

fn of_executions(stats: &RuntimeStats) -> Vec<MetricFamily> {
    let running = stats.executions_running.iter();
    let running = running.map(|(workflow, count)| (vec![("workflow", workflow.as_str())], *count));
    vec![
        gauge("greenroom_executions_live", "Executions in memory", stats.executions_live),
        gauge(
            "greenroom_executions_memory_bytes",
            "Estimated memory of executions",
            stats.executions_memory,
        ),
        gauge(
            "greenroom_executions_memory_max_bytes",
            "Limit of the memory of executions (limits.executions_memory_max)",
            stats.executions_memory_max,
        ),
        gauge(
            "greenroom_executions_waiting",
            "Executions that wait for free memory before they are loaded from the store",
            stats.executions_waiting,
        ),
        counter(
            "greenroom_executions_refused_total",
            "Starts, resumes and subscriptions refused because memory for executions is used up",
            stats.executions_refused,
        ),
        figures(
            MetricType::GAUGE,
            "greenroom_executions_running",
            "Executions in memory with the status running",
            running,
        ),
        gauge(
            "greenroom_executions_stuck",
            "Executions that no event can continue, at most 1000",
            stats.executions_stuck,
        ),
        gauge(
            "greenroom_executions_set_aside",
            "Executions set aside at the start because they repeatedly ended the process",
            stats.executions_set_aside,
        ),
        counter(
            "greenroom_executions_passivated_total",
            "Waiting executions unloaded from memory",
            stats.executions_passivated,
        ),
        counter(
            "greenroom_executions_recovered_total",
            "Executions loaded into memory from the store",
            stats.executions_rebuilt,
        ),
    ]
}

fn of_runtime(stats: &RuntimeStats) -> Vec<MetricFamily> {
    vec![
        gauge("greenroom_ready", "1 while new work is accepted", usize::from(stats.is_ready)),
        gauge(
            "greenroom_store_writable",
            "1 while the store accepts writes, 0 during an outage",
            usize::from(stats.is_store_writable),
        ),
        gauge(
            "greenroom_arbiters_stalled",
            "Threads of executions that have not responded for two seconds",
            stats.threads_stalled,
        ),
        counter(
            "greenroom_evaluations_moved_total",
            "Evaluations and schema checks moved to worker threads because they took too long, and compiled schemas of questions",
            stats.evaluations_moved,
        ),
        counter(
            "greenroom_evaluations_exceeded_total",
            "Moved evaluations that failed because they exceeded limits.expression_time_max",
            stats.evaluations_exceeded,
        ),
        gauge(
            "greenroom_evaluations_pending",
            "Moved evaluations that are queued or running",
            stats.evaluations_pending,
        ),
        counter(
            "greenroom_actors_panicked_total",
            "Panics of actors of executions; the execution was recovered or failed",
            stats.actors_panicked,
        ),
        counter(
            "greenroom_orders_refused_total",
            "Commands refused as busy because the mailbox of a supervisor was full",
            stats.commands_refused,
        ),
        gauge(
            "greenroom_steps_running",
            "Functions, calls and agents running for steps",
            stats.steps_running,
        ),
        gauge("greenroom_generations_live", "Generations running", stats.generations_live),
        gauge(
            "greenroom_timers_pending",
            "Timers in memory, which are due within a minute",
            stats.timers_held,
        ),
        gauge("greenroom_observers", "Subscribers of spans and logs", stats.observers),
    ]
}

fn of_store(reading: StoreReading) -> Vec<MetricFamily> {
    let StoreReading { queued, database_bytes, wal_bytes } = reading;
    let log = wal_bytes.map(|bytes| {
        gauge("greenroom_wal_size_bytes", "Size of the write-ahead log of a file", bytes)
    });
    let queue =
        "Requests queued for the writers of the store; PostgreSQL: also those being committed";
    let mut families = vec![
        gauge("greenroom_journal_queue", queue, queued),
        gauge("greenroom_database_size_bytes", "Size of the database", database_bytes),
    ];
    families.extend(log);
    families
}

fn of_exporter(stats: &ExporterStats) -> MetricFamily {
    let ExporterStats { traces, metrics, logs } = stats;
    let signals = [("traces", traces), ("metrics", metrics), ("logs", logs)];
    let rows = signals.into_iter().flat_map(|(signal, stats)| {
        let SignalCounts { exported, dropped, failed } = stats.counts();
        [("exported", exported), ("dropped", dropped), ("failed", failed)]
            .map(|(outcome, count)| (vec![("signal", signal), ("outcome", outcome)], count))
    });
    let help = "Spans, metric points and log records exported, dropped before sending, or failed";
    figures(MetricType::COUNTER, "greenroom_export_items_total", help, rows)
}

fn of_logs() -> [MetricFamily; 3] {
    let levels = LogLevel::ALL.map(|level| (vec![("level", level.as_str())], logs::logged(level)));
    let help = "Log records written to the console or stored";
    [
        figures(MetricType::COUNTER, "greenroom_log_records_total", help, levels),
        counter(
            "greenroom_log_records_dropped_total",
            "Log records not stored because the queue was full",
            logs::dropped(),
        ),
        counter(
            "greenroom_log_lines_dropped_total",
            "Lines not written to the console because it was not read in time",
            logs::lines_dropped(),
        ),
    ]
}

fn of_configuration(reload_status: &ReloadStatus) -> [MetricFamily; 3] {
    let (taken, refused) = reload_status.counts();
    let rows = [(vec![("outcome", "taken")], taken), (vec![("outcome", "refused")], refused)];
    let help = "Configuration reloads applied (taken) or rejected (refused)";
    let since = u64::try_from(reload_status.since().0).unwrap_or_default();
    [
        figures(MetricType::COUNTER, "greenroom_config_reloads_total", help, rows),
        gauge(
            "greenroom_config_last_reload_successful",
            "1 if the newest change of the configuration was applied, or there was none; 0 if rejected",
            usize::from(!reload_status.is_refused()),
        ),
        gauge(
            "greenroom_config_last_reload_success_timestamp_seconds",
            "Time since 1970 at which the configuration in use was applied, or the server started",
            Duration::from_millis(since),
        ),
    ]
}

fn dropped(stats: &RuntimeStats, to_readers: u64) -> MetricFamily {
    let rows = [
        (vec![("at", "feed")], stats.feed_dropped),
        (vec![("at", "reader")], to_readers),
        (vec![("at", "step")], stats.progress_dropped),
    ];
    let help = "Events dropped because the feed, a subscriber or a step fell behind";
    figures(MetricType::COUNTER, "greenroom_events_dropped_total", help, rows)
}

fn of_held(held: &HeldBytes) -> [MetricFamily; 2] {
    let HeldBytes { streams, answers, bodies } = held;
    let rows = [("streams", streams), ("answers", answers)]
        .map(|(what, bytes)| (vec![("what", what)], bytes.load(Ordering::Relaxed)));
    let help = "Bytes buffered for clients that read slowly or not at all";
    let unread = figures(MetricType::GAUGE, "greenroom_unread_bytes", help, rows);
    let rows = [(vec![], bodies.load(Ordering::Relaxed))];
    let help = "Bytes of request bodies held at once, without the first 32 KiB of each";
    [unread, figures(MetricType::GAUGE, "greenroom_request_body_bytes", help, rows)]
}

fn build_info() -> MetricFamily {
    let version = [(vec![("version", env!("CARGO_PKG_VERSION"))], 1_usize)];
    figures(MetricType::GAUGE, "greenroom_build_info", "Always 1; version of the server", version)
}

/// A number that converts to a float; beyond 2^53 to the nearest one.
pub(super) trait Figure: Copy {
    fn as_float(self) -> f64;
}

impl Figure for u64 {
    fn as_float(self) -> f64 {
        self as f64
    }
}

impl Figure for usize {
    fn as_float(self) -> f64 {
        self as f64
    }
}

impl Figure for Duration {
    /// In seconds.
    fn as_float(self) -> f64 {
        self.as_secs_f64()
    }
}

pub(super) fn gauge(name: &str, help: &str, value: impl Figure) -> MetricFamily {
    figures(MetricType::GAUGE, name, help, [(Vec::new(), value)])
}

pub(super) fn counter(name: &str, help: &str, value: u64) -> MetricFamily {
    figures(MetricType::COUNTER, name, help, [(Vec::new(), value)])
}

/// Builds a family of counters or gauges, one series per row of labels and value.
pub(super) fn figures<'a, F: Figure>(
    kind: MetricType,
    name: &str,
    help: &str,
    rows: impl IntoIterator<Item = (Vec<(&'a str, &'a str)>, F)>,
) -> MetricFamily {
    let metric = |(labels, value): (Vec<_>, F)| {
        let mut metric = Metric::from_label(labels.into_iter().map(pair).collect());
        if kind == MetricType::COUNTER {
            let mut counter = Counter::default();
            counter.set_value(value.as_float());
            metric.set_counter(counter);
        } else {
            let mut gauge = Gauge::default();
            gauge.set_value(value.as_float());
            metric.set_gauge(gauge);
        }
        metric
    };
    let mut family = MetricFamily::default();
    family.set_name(name.to_owned());
    family.set_help(help.to_owned());
    family.set_field_type(kind);
    family.set_metric(rows.into_iter().map(metric).collect());
    family
}

pub(super) fn pair((name, value): (&str, &str)) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name(name.to_owned());
    pair.set_value(value.to_owned());
    pair
}
