//! `[telemetry]`: the collector of traces, metrics and logs.

mod environment;
mod header;

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::Url;

use super::entry::Entry;
use super::keys::{Takes, Value, section};

pub use environment::Exports;
pub use header::ConfiguredHeader;

section! {
    /// The collector of traces, metrics and logs. The standard variables of the environment set the
    /// keys that are options and not written.
    #[derive(Debug, Clone, PartialEq)]
    pub struct TelemetryConfig {
        /// Address of a collector that takes OTLP over HTTP; `v1/traces`, `v1/metrics` and `v1/logs`
        /// are added. Default: `OTEL_EXPORTER_OTLP_ENDPOINT` and the variables of the three signals;
        /// else nothing is sent.
        endpoint: Option<Url> = None, Takes::Own("an address");
        /// Headers of every request; `secret:NAME` is taken from the environment. Default: none.
        headers: Vec<ConfiguredHeader> = Vec::new(), Takes::Own("a table of strings");
        /// The attribute `service.name`. Default: `OTEL_SERVICE_NAME`, else `greenroom`.
        service_name: Option<String> = None, Takes::Text;
        /// Further attributes of this process, beside `OTEL_RESOURCE_ATTRIBUTES`.
        resource: BTreeMap<String, String> = BTreeMap::new(), Takes::Own("a table of strings");
        /// Whether traces are sent.
        traces: bool = true, Takes::Flag;
        /// Whether metrics are sent.
        metrics: bool = true, Takes::Flag;
        /// Whether logs are sent.
        logs: bool = true, Takes::Flag;
        /// Share of the traces that is sent; a trace is sent whole or not at all. Default:
        /// `OTEL_TRACES_SAMPLER` with `OTEL_TRACES_SAMPLER_ARG`, else all of them.
        sample_ratio: Option<f64> = None, Takes::Share;
        /// Whether spans contain prompts, answers, arguments, results, inputs and outputs; also
        /// those of `/observability` and `/ws/observability`.
        content: bool = false, Takes::Flag;
        /// Time between two exports of metrics. Default: `OTEL_METRIC_EXPORT_INTERVAL`
        /// (milliseconds), else 60s.
        interval: Option<Duration> = None, Takes::Duration;
        /// Spans, or log records, of one request.
        batch: usize = 512, Takes::Integer(1..=10_000);
        /// Spans, or log records, that may wait for the collector; beyond it they are dropped and
        /// counted.
        queue: usize = 8_192, Takes::Integer(1..=1_000_000);
        /// Bytes of the spans, or log records, that may wait for the collector.
        queue_bytes: usize = 32 * 1024 * 1024, Takes::Bytes(65_536..=i64::MAX);
        /// How long one request, and the last requests when the server stops, may take. Default:
        /// `OTEL_EXPORTER_OTLP_TIMEOUT` (milliseconds), else 10s.
        timeout: Option<Duration> = None, Takes::Duration;
    }
}

impl Value for Url {
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        let text = entry.filled_text()?;
        if !cfg!(feature = "otel") {
            entry.place.refuse("this build exports nothing: build it with the feature `otel`");
            return None;
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

/// Parses the address of a collector; it ends with `/`. Refusals repeat nothing of it.
fn base_url(text: &str) -> Result<Url, &'static str> {
    let mut url = plain_url(text)?;
    let path = url.path().trim_end_matches('/').to_owned();
    if ["v1/traces", "v1/metrics", "v1/logs"].iter().any(|own| path.ends_with(own)) {
        return Err("must be the collector's own address; `v1/traces` and the like are added");
    }
    url.set_path(&format!("{path}/"));
    Ok(url)
}

/// Parses an address that holds nothing secret.
fn plain_url(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).map_err(|_| "is no address, e.g. http://127.0.0.1:4318")?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        Err("must begin with http:// or https://")
    } else if url.password().is_some() || !url.username().is_empty() {
        Err("must not hold a user name or a password; say them in headers")
    } else if url.query().is_some() || url.fragment().is_some() {
        Err("must end with a path")
    } else {
        Ok(url)
    }
}

fn attribute(name: String, entry: &Entry<'_>) -> Option<(String, String)> {
    if name.is_empty() {
        entry.place.refuse("needs a name");
    }
    if name == "service.name" {
        entry.place.refuse("is what `service_name` says");
    }
    Some((name, entry.text()?))
}
