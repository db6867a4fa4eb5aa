//! Settings and counters of the export of telemetry. Also compiled without the feature `otel`.

mod sampler;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::header::HeaderMap;
use url::Url;

pub use sampler::Sampler;

/// Settings of the exporter.
#[derive(Debug, Clone, PartialEq)]
pub struct ExporterSettings {
    /// Collector of spans; `None` to export none.
    pub traces: Option<Target>,
    /// Collector of metrics; `None` to export none.
    pub metrics: Option<Target>,
    /// Collector of log records; `None` to export none.
    pub logs: Option<Target>,
    /// Resource attributes, which describe this process.
    pub resource: BTreeMap<String, String>,
    pub sampler: Sampler,
    /// True if spans include prompts, answers, inputs and outputs.
    pub content: bool,
    /// Interval of exports of metrics.
    pub interval: Duration,
    /// Maximum number of spans, or log records, of one request.
    pub batch: usize,
    /// Maximum number of queued spans, or log records.
    pub queue: usize,
    /// Maximum size of queued spans, or log records, in bytes.
    pub queue_bytes: usize,
}

impl ExporterSettings {
    /// Returns the values of all headers, which are usually keys.
    pub(crate) fn header_values(&self) -> impl Iterator<Item = &str> {
        let targets = [&self.traces, &self.metrics, &self.logs].into_iter().flatten();
        targets.flat_map(|target| target.headers.values()).filter_map(|value| value.to_str().ok())
    }
}

/// Endpoint of a collector for one signal.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Full URL, with the path of the signal.
    pub url: Url,
    /// True if the host is this machine, which is reached without a proxy.
    pub is_local: bool,
    /// Headers of every request; their values are marked as sensitive.
    pub headers: HeaderMap,
    /// Timeout of one request, from connecting to the end of the response.
    pub timeout: Duration,
}

impl Target {
    /// Returns host and port of the endpoint for the log; the rest of the URL may contain a key.
    pub fn host(&self) -> String {
        let port = self.url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}{port}", self.url.host_str().unwrap_or_default())
    }
}

/// Counters of spans, data points and log records. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct ExporterStats {
    pub traces: Arc<SignalStats>,
    pub metrics: Arc<SignalStats>,
    pub logs: Arc<SignalStats>,
}

/// Counters of one signal.
#[derive(Debug, Default)]
pub struct SignalStats {
    exported: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

/// Values of [`SignalStats`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SignalCounts {
    /// Accepted by the collector.
    pub exported: u64,
    /// Never sent, because the queue was full.
    pub dropped: u64,
    /// Sent, but rejected, or failed in all attempts.
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
