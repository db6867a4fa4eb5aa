//! `[telemetry]`: where traces, metrics and logs are sent.

mod environment;
mod header;

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::Url;

use super::entry::Entry;
use super::section::Section;

pub use environment::Exports;
pub use header::ConfiguredHeader;

const QUEUE_MAX: i64 = 1_000_000;

/// Where traces, metrics and logs are sent. What is not written here may be said by the standard
/// variables of the environment: those keys are options.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetryConfig {
    /// The address of a collector that takes OTLP over HTTP, without `v1/traces` and the like.
    pub endpoint: Option<Url>,
    /// Headers of the requests to it.
    pub headers: Vec<ConfiguredHeader>,
    /// `service.name`.
    pub service_name: Option<String>,
    /// Further attributes of this process.
    pub resource: BTreeMap<String, String>,
    pub traces: bool,
    pub metrics: bool,
    pub logs: bool,
    /// Share of the traces that is exported, from 0 to 1.
    pub sample_ratio: Option<f64>,
    /// Whether spans show what was said in them, wherever they are shown.
    pub content: bool,
    /// From one export of metrics to the next.
    pub interval: Option<Duration>,
    /// Spans, or log records, of one request.
    pub batch: usize,
    /// Spans, or log records, that may wait.
    pub queue: usize,
    /// The same in bytes.
    pub queue_bytes: usize,
    /// Bound of one request, and of the last exports when the server stops.
    pub timeout: Option<Duration>,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            endpoint: None,
            headers: Vec::new(),
            service_name: None,
            resource: BTreeMap::new(),
            traces: true,
            metrics: true,
            logs: true,
            sample_ratio: None,
            content: false,
            interval: None,
            batch: 512,
            queue: 8_192,
            queue_bytes: 32 * 1024 * 1024,
            timeout: None,
        }
    }
}

impl TelemetryConfig {
    pub(crate) fn read(section: Section<'_>) -> Self {
        let default = Self::default();
        let headers = section.named_entries("headers");
        let headers =
            headers.into_iter().filter_map(|(name, it)| ConfiguredHeader::read(&name, &it));
        let resource = section.named_entries("resource");
        let resource = resource.into_iter().filter_map(|(name, it)| attribute(name, &it));
        let telemetry = Self {
            endpoint: section.get("endpoint").and_then(|entry| endpoint(&entry)),
            headers: headers.collect(),
            service_name: section.get("service_name").and_then(|entry| entry.filled_text()),
            resource: resource.collect(),
            traces: section.flag("traces", default.traces),
            metrics: section.flag("metrics", default.metrics),
            logs: section.flag("logs", default.logs),
            sample_ratio: section.get("sample_ratio").and_then(|it| it.number(0.0..=1.0)),
            content: section.flag("content", default.content),
            interval: section.get("interval").and_then(|entry| entry.duration()),
            batch: section.integer("batch", 1..=10_000, default.batch),
            queue: section.integer("queue", 1..=QUEUE_MAX, default.queue),
            queue_bytes: section.integer("queue_bytes", 65_536..=i64::MAX, default.queue_bytes),
            timeout: section.get("timeout").and_then(|entry| entry.duration()),
        };
        section.close();
        telemetry
    }
}

fn endpoint(entry: &Entry<'_>) -> Option<Url> {
    let text = entry.filled_text()?;
    if !cfg!(feature = "otel") {
        entry.place.refuse("this build exports nothing: build it with the feature `otel`");
        return None;
    }
    let url = base_url(&text);
    url.map_err(|problem| entry.place.refuse(problem)).ok()
}

/// The address of a collector; ends with `/`. Refusals repeat nothing of it.
fn base_url(text: &str) -> Result<Url, &'static str> {
    let mut url = plain_url(text)?;
    let path = url.path().trim_end_matches('/').to_owned();
    if ["v1/traces", "v1/metrics", "v1/logs"].iter().any(|own| path.ends_with(own)) {
        return Err("must be the collector's own address; `v1/traces` and the like are added");
    }
    url.set_path(&format!("{path}/"));
    Ok(url)
}

/// An address that may be shown.
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
