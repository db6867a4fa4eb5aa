//! Standard environment variables in place of keys that are not set
//! (<https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>).
//!
//! Mistakes in the file are errors. A wrong variable, which may be meant for other programs, is
//! ignored with a warning.

use std::collections::BTreeMap;
use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use url::Url;

use crate::config::Environment;
use crate::config::calls::NOT_FOR_HEADERS;
use crate::config::problem::ConfigProblem;
use crate::loopback::is_loopback;
use crate::telemetry::export::{ExporterSettings, Sampler, Target};

use super::header::secret_value;
use super::{TelemetryConfig, base_url, plain_url};

const SERVICE_NAME: &str = "greenroom";
const PROTOCOL: &str = "http/protobuf";
const TIMEOUT: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_secs(60);
/// Keys of a service that accepts telemetry, and the headers that they are sent in.
const SERVICE_KEYS: [(&str, HeaderName); 2] = [
    ("SERVICE_PUBLIC_KEY", HeaderName::from_static("x-public-key")),
    ("SERVICE_SECRET_KEY", HeaderName::from_static("x-secret-key")),
];

/// The settings of the export, from the file and the environment.
#[derive(Debug, Default)]
pub struct Exports {
    /// `None` if nothing is exported.
    pub settings: Option<ExporterSettings>,
    /// Mistakes in the environment.
    pub warnings: Vec<String>,
    /// Secrets in the file that the environment does not have.
    pub problems: Vec<ConfigProblem>,
}

#[derive(Clone, Copy)]
enum Signal {
    Traces,
    Metrics,
    Logs,
}

impl Signal {
    fn path(self) -> &'static str {
        match self {
            Self::Traces => "v1/traces",
            Self::Metrics => "v1/metrics",
            Self::Logs => "v1/logs",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Traces => "TRACES",
            Self::Metrics => "METRICS",
            Self::Logs => "LOGS",
        }
    }
}

/// Reads variables and collects their mistakes.
struct Reader<'a> {
    config: &'a TelemetryConfig,
    variables: &'a dyn Fn(&str) -> Option<String>,
    found: Exports,
}

impl TelemetryConfig {
    /// Returns the settings of the export, from the file and the environment.
    pub fn exports(
        &self,
        variables: &dyn Fn(&str) -> Option<String>,
        environment: Environment,
    ) -> Exports {
        let mut reader = Reader { config: self, variables, found: Exports::default() };
        if reader.is_disabled() {
            return Exports::default();
        }
        let traces = self.traces.then(|| reader.target(Signal::Traces)).flatten();
        let metrics = self.metrics.then(|| reader.target(Signal::Metrics)).flatten();
        let logs = self.logs.then(|| reader.target(Signal::Logs)).flatten();
        if traces.is_some() || metrics.is_some() || logs.is_some() {
            let resource = reader.resource(environment);
            let sampler = reader.sampler();
            let interval = reader.interval();
            reader.found.settings = Some(ExporterSettings {
                traces,
                metrics,
                logs,
                resource,
                sampler,
                content: self.content,
                interval,
                batch: self.batch,
                queue: self.queue,
                queue_bytes: self.queue_bytes,
            });
        }
        if !cfg!(feature = "otel") && reader.found.settings.take().is_some() {
            let warning = "the environment names a collector, but this build has no exporter; \
                           build with the feature `otel`";
            reader.found.warnings = vec![warning.to_owned()];
        }
        reader.found
    }
}

impl Reader<'_> {
    /// Returns a variable that is set. An empty one counts as not set, as the standard requires.
    fn variable(&self, name: &str) -> Option<String> {
        let value = (self.variables)(name)?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// Returns the variable of one signal, else the one of all signals, with its name.
    fn exporter_variable(&self, signal: Signal, word: &str) -> Option<(String, String)> {
        let own = format!("OTEL_EXPORTER_OTLP_{}_{word}", signal.word());
        let names = [own, format!("OTEL_EXPORTER_OTLP_{word}")];
        names.into_iter().find_map(|name| Some((self.variable(&name)?, name)))
    }

    /// Adds a warning once, although all three signals read the same variables.
    fn warn(&mut self, warning: String) {
        if !self.found.warnings.contains(&warning) {
            self.found.warnings.push(warning);
        }
    }

    fn warn_of_pair(&mut self, name: &str) {
        self.warn(format!("{name} has an entry that is not `name=value`; the entry is ignored"));
    }

    fn is_disabled(&self) -> bool {
        self.variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    fn target(&mut self, signal: Signal) -> Option<Target> {
        let url = self.url(signal)?;
        let headers = self.headers(signal);
        let timeout = self.timeout(signal);
        let is_local = is_loopback(&url);
        Some(Target { url, is_local, headers, timeout })
    }

    fn url(&mut self, signal: Signal) -> Option<Url> {
        if let Some(endpoint) = &self.config.endpoint {
            return endpoint.join(signal.path()).ok();
        }
        let own = format!("OTEL_EXPORTER_OTLP_{}_ENDPOINT", signal.word());
        let all = "OTEL_EXPORTER_OTLP_ENDPOINT";
        let (name, url) = match (self.variable(&own), self.variable(all)) {
            // a whole address: no path is appended
            (Some(text), _) => (own.as_str(), plain_url(&text)),
            (None, Some(text)) => {
                let url = base_url(&text).map(|url| url.join(signal.path()).ok());
                (all, url.and_then(|url| url.ok_or_else(|| "is not a valid address".to_owned())))
            }
            (None, None) => return None,
        };
        match url {
            Ok(url) => self.speaks_our_protocol(signal).then_some(url),
            Err(problem) => {
                self.warn(format!("{name} {problem}; nothing is exported to it"));
                None
            }
        }
    }

    /// Checks the protocol if the environment chose the address, which may be a port for gRPC.
    fn speaks_our_protocol(&mut self, signal: Signal) -> bool {
        let Some((protocol, name)) = self.exporter_variable(signal, "PROTOCOL") else {
            return true;
        };
        let is_ours = protocol == PROTOCOL;
        if !is_ours {
            self.warn(format!(
                "{name} selects an unsupported protocol, so nothing is exported there; use \
                 {PROTOCOL}, usually at port 4318"
            ));
        }
        is_ours
    }

    /// Returns the headers: keys of the service, overridden by the environment, overridden by the
    /// file.
    fn headers(&mut self, signal: Signal) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (variable, header) in SERVICE_KEYS {
            let Some(key) = self.variable(variable) else { continue };
            match secret_value(&key) {
                Some(value) => drop(headers.insert(header, value)),
                None => {
                    self.warn(format!("{variable} {NOT_FOR_HEADERS}; it is not sent"));
                }
            }
        }
        if let Some((text, name)) = self.exporter_variable(signal, "HEADERS") {
            for pair in pairs(&text) {
                match pair.and_then(|(name, value)| header(&name, &value)) {
                    Some((name, value)) => drop(headers.insert(name, value)),
                    None => self.warn_of_pair(&name),
                }
            }
        }
        for configured in &self.config.headers {
            match configured.value(self.variables) {
                Ok(value) => drop(headers.insert(configured.name.clone(), value)),
                Err(problem) if self.found.problems.contains(&problem) => {}
                Err(problem) => self.found.problems.push(problem),
            }
        }
        headers
    }

    fn timeout(&mut self, signal: Signal) -> Duration {
        if let Some(timeout) = self.config.timeout {
            return timeout;
        }
        let Some((text, name)) = self.exporter_variable(signal, "TIMEOUT") else { return TIMEOUT };
        self.milliseconds(&text, &name).unwrap_or(TIMEOUT)
    }

    fn interval(&mut self) -> Duration {
        const VARIABLE: &str = "OTEL_METRIC_EXPORT_INTERVAL";
        if let Some(interval) = self.config.interval {
            return interval;
        }
        let Some(text) = self.variable(VARIABLE) else { return INTERVAL };
        self.milliseconds(&text, VARIABLE).unwrap_or(INTERVAL)
    }

    fn milliseconds(&mut self, text: &str, name: &str) -> Option<Duration> {
        let read = text.parse().ok().filter(|milliseconds| (1..=3_600_000).contains(milliseconds));
        if read.is_none() {
            self.warn(format!("{name} must be milliseconds, from 1 to 3600000; it is ignored"));
        }
        read.map(Duration::from_millis)
    }

    fn resource(&mut self, environment: Environment) -> BTreeMap<String, String> {
        const VARIABLE: &str = "OTEL_RESOURCE_ATTRIBUTES";
        let own = [
            ("service.name", SERVICE_NAME),
            ("service.version", env!("CARGO_PKG_VERSION")),
            ("deployment.environment.name", environment.as_str()),
            ("telemetry.sdk.name", SERVICE_NAME),
            ("telemetry.sdk.language", "rust"),
            ("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
        ];
        let mut resource: BTreeMap<_, _> =
            own.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        for pair in pairs(&self.variable(VARIABLE).unwrap_or_default()) {
            match pair {
                Some((name, value)) => drop(resource.insert(name, value)),
                None => self.warn_of_pair(VARIABLE),
            }
        }
        let named = self.config.service_name.clone();
        if let Some(name) = named.or_else(|| self.variable("OTEL_SERVICE_NAME")) {
            resource.insert("service.name".to_owned(), name);
        }
        resource.extend(self.config.resource.clone());
        resource
    }

    fn sampler(&mut self) -> Sampler {
        const VARIABLE: &str = "OTEL_TRACES_SAMPLER";
        if let Some(ratio) = self.config.sample_ratio {
            return Sampler { ratio, ..Sampler::default() };
        }
        let Some(written) = self.variable(VARIABLE) else { return Sampler::default() };
        let (name, follows_caller) = match written.strip_prefix("parentbased_") {
            Some(name) => (name, true),
            None => (written.as_str(), false),
        };
        let ratio = match name {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => self.ratio(),
            _ => {
                self.warn(format!("{VARIABLE} is not a known sampler; all traces are exported"));
                return Sampler::default();
            }
        };
        Sampler { ratio, follows_caller }
    }

    fn ratio(&mut self) -> f64 {
        const VARIABLE: &str = "OTEL_TRACES_SAMPLER_ARG";
        let Some(text) = self.variable(VARIABLE) else { return 1.0 };
        match text.parse() {
            Ok(ratio) if (0.0..=1.0).contains(&ratio) => ratio,
            Ok(_) | Err(_) => {
                self.warn(format!("{VARIABLE} must be from 0 to 1; all traces are exported"));
                1.0
            }
        }
    }
}

/// Parses a list such as `a=1,b=two%20words`; entries that are not pairs are `None`.
fn pairs(text: &str) -> Vec<Option<(String, String)>> {
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    let pair = |item: &str| {
        let (name, value) = item.split_once('=')?;
        let name = name.trim();
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        (!name.is_empty()).then(|| (name.to_owned(), value.into_owned()))
    };
    items.map(pair).collect()
}

fn header(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    Some((HeaderName::try_from(name).ok()?, secret_value(value)?))
}
