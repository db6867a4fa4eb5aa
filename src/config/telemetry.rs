//! `[telemetry]`: the collector of traces, metrics and logs.

mod environment;
mod header;

use std::collections::BTreeMap;
use std::time::Duration;

use url::Url;

use super::entry::{Entry, web_address};
use super::keys::{Takes, Value, section};

pub use environment::Exports;
pub use header::ConfiguredHeader;

section! {
    /// The collector of traces, metrics and logs. Optional keys that are not set follow the standard
    /// environment variables.
    #[derive(Debug, Clone, PartialEq)]
    pub struct TelemetryConfig {
        /// Address of a collector for OTLP over HTTP; `v1/traces`, `v1/metrics` and `v1/logs` are
        /// appended. Default: `OTEL_EXPORTER_OTLP_ENDPOINT` and the variables of the three signals;
        /// else nothing is sent.
        endpoint: Option<Url> = None, Takes::Own("an address");
        /// Headers of every request; `secret:NAME` is replaced by an environment variable. Default:
        /// none.
        headers: Vec<ConfiguredHeader> = Vec::new(), Takes::TableOfTexts;
        /// The attribute `service.name`. Default: `OTEL_SERVICE_NAME`, else `greenroom`.
        service_name: Option<String> = None, Takes::Text;
        /// Further attributes of this process, beside `OTEL_RESOURCE_ATTRIBUTES`.
        resource: BTreeMap<String, String> = BTreeMap::new(), Takes::TableOfTexts;
        /// Sends traces.
        traces: bool = true, Takes::Flag;
        /// Sends metrics.
        metrics: bool = true, Takes::Flag;
        /// Sends logs.
        logs: bool = true, Takes::Flag;
        /// Share of traces that are sent; traces are never split. Default: `OTEL_TRACES_SAMPLER`
        /// with `OTEL_TRACES_SAMPLER_ARG`, else 1.
        sample_ratio: Option<f64> = None, Takes::Share;
        /// Includes prompts, answers, arguments, results, inputs and outputs in spans, also in those
        /// of `/observability` and `/ws/observability`.
        content: bool = false, Takes::Flag;
        /// Time between two exports of metrics. Default: `OTEL_METRIC_EXPORT_INTERVAL`
        /// (milliseconds), else 60s.
        interval: Option<Duration> = None, Takes::Duration;
        /// Maximum number of spans, or log records, in one request.
        batch: usize = 512, Takes::Integer(1..=10_000);
        /// Spans, or log records, that may wait for the collector; further ones are dropped and
        /// counted.
        queue: usize = 8_192, Takes::Integer(1..=1_000_000);
        /// Bytes of the spans, or log records, that may wait for the collector.
        queue_bytes: usize = 32 * 1024 * 1024, Takes::Bytes(65_536..=i64::MAX);
        /// Time limit of one request, and of the last requests when the server stops. Default:
        /// `OTEL_EXPORTER_OTLP_TIMEOUT` (milliseconds), else 10s.
        timeout: Option<Duration> = None, Takes::Duration;
    }
}

impl Value for Url {
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        let text = entry.filled_text()?;
        if !cfg!(feature = "otel") {
            return entry.refuse("this build has no exporter; build with the feature `otel`");
        }
        base_url(&text).map_err(|problem| entry.place.refuse(problem)).ok()
    }
}

impl Value for Vec<ConfiguredHeader> {
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        let named = entry.section()?.named().into_iter();
        Some(named.filter_map(|(name, it)| ConfiguredHeader::read(&name, &it)).collect())
    }
}

impl Value for BTreeMap<String, String> {
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        let named = entry.section()?.named().into_iter();
        Some(named.filter_map(|(name, it)| attribute(name, &it)).collect())
    }
}

/// Parses the address of a collector and returns it with a final `/`.
fn base_url(text: &str) -> Result<Url, String> {
    let mut url = plain_url(text)?;
    let path = url.path().trim_end_matches('/').to_owned();
    if ["v1/traces", "v1/metrics", "v1/logs"].iter().any(|own| path.ends_with(own)) {
        return Err("must not end with `v1/traces`, `v1/metrics` or `v1/logs`, which are appended"
            .to_owned());
    }
    url.set_path(&format!("{path}/"));
    Ok(url)
}

fn plain_url(text: &str) -> Result<Url, String> {
    let url = web_address(text)?;
    let has_path_only = url.query().is_none() && url.fragment().is_none();
    if has_path_only { Ok(url) } else { Err("must end with a path".to_owned()) }
}

fn attribute(name: String, entry: &Entry<'_>) -> Option<(String, String)> {
    if name.is_empty() {
        entry.place.refuse("needs a name");
    }
    if name == "service.name" {
        entry.place.refuse("is set with `service_name`");
    }
    Some((name, entry.text()?))
}
