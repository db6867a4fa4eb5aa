//! What the export of telemetry is told, and what it counts. Also there in builds without it.

mod sampler;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::Url;
use reqwest::header::HeaderMap;

pub use sampler::Sampler;

/// Everything that an exporter is told.
#[derive(Debug, Clone, PartialEq)]
pub struct ExporterSettings {
    /// Where spans go; none: nowhere.
    pub traces: Option<Target>,
    /// The same for metrics.
    pub metrics: Option<Target>,
    /// The same for log records.
    pub logs: Option<Target>,
    /// What is said of this process, by name.
    pub resource: BTreeMap<String, String>,
    pub sampler: Sampler,
    /// Whether spans say what was said in them.
    pub content: bool,
    /// From one export of metrics to the next.
    pub interval: Duration,
    /// Spans, or log records, of one request.
    pub batch: usize,
    /// Spans, or log records, that may wait.
    pub queue: usize,
    /// The same in bytes.
    pub queue_bytes: usize,
}

impl ExporterSettings {
    /// What is sent in headers: keys, most often.
    pub(crate) fn header_values(&self) -> impl Iterator<Item = &str> {
        let targets = [&self.traces, &self.metrics, &self.logs].into_iter().flatten();
        targets.flat_map(|target| target.headers.values()).filter_map(|value| value.to_str().ok())
    }
}

/// Where one signal goes.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The whole address.
    pub url: Url,
    /// Whether it is on this machine: then no proxy is asked.
    pub is_local: bool,
    /// Sent with every request; their values are marked as secrets.
    pub headers: HeaderMap,
    /// Bound of one request, from the connection to the end of the answer.
    pub timeout: Duration,
}

/// What became of spans, data points and log records. Clones count the same.
#[derive(Debug, Clone, Default)]
pub struct ExporterStats {
    pub traces: Arc<SignalStats>,
    pub metrics: Arc<SignalStats>,
    pub logs: Arc<SignalStats>,
}

/// The same for one of the three.
#[derive(Debug, Default)]
pub struct SignalStats {
    exported: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

/// What was counted up to now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SignalCounts {
    /// Taken by the collector.
    pub exported: u64,
    /// Never sent: too many were waiting.
    pub dropped: u64,
    /// Sent, but refused, or not taken in any attempt.
    pub failed: u64,
}

impl SignalStats {
    pub fn add_exported(&self, count: u64) {
        self.exported.fetch_add(count, Ordering::Relaxed);
    }

    pub fn add_dropped(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }

    pub fn add_failed(&self, count: u64) {
        self.failed.fetch_add(count, Ordering::Relaxed);
    }

    pub fn counts(&self) -> SignalCounts {
        SignalCounts {
            exported: self.exported.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}
