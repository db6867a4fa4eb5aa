//! Telemetry as it is configured: who hears of spans and log records for the exporter, and what is
//! sent before the process ends.

#[cfg(feature = "otel")]
mod forwarder;
mod variables;

use std::io;
use std::sync::Arc;

use greenroom_actors::Runtime;
use greenroom_actors::observe::span::Observer;

pub(crate) use self::variables::Variables;
use crate::config::{Config, Exports};
use crate::telemetry::export::ExporterStats;
use crate::telemetry::logs::LogSink;
use crate::telemetry::metrics::Metrics;

#[cfg(feature = "otel")]
use {
    self::forwarder::{Forwarder, Settle},
    crate::telemetry::export::ExporterSettings,
    crate::telemetry::otlp::{Exporter, Gather},
    actix::Addr,
    greenroom_actors::observe::log_record::LogRecord,
    greenroom_actors::observe::span::ObserverFilter,
    greenroom_actors::ports::clock::SystemClock,
    std::time::Duration,
};

/// How long what has happened may take to reach the exporter when the server stops.
#[cfg(feature = "otel")]
const SETTLING: Duration = Duration::from_secs(2);

/// The export of telemetry, which may be off.
pub(super) struct Telemetry {
    #[cfg(feature = "otel")]
    exporter: Option<(Exporter, Addr<Forwarder>)>,
}

impl Telemetry {
    /// Starts the exporter, if the configuration or the environment names a collector.
    #[cfg(feature = "otel")]
    pub(super) fn start(config: &Config, metrics: Option<&Arc<Metrics>>) -> io::Result<Self> {
        let gather = metrics.cloned().map(|metrics| Box::new(move || metrics.gather()) as Gather);
        let Some(settings) = settings(config)? else { return Ok(Self { exporter: None }) };
        log_targets(&settings);
        let exporter = Exporter::start(settings, Arc::new(SystemClock), gather)?;
        let forwarder = Forwarder::launch(exporter.clone());
        Ok(Self { exporter: Some((exporter, forwarder)) })
    }

    /// Says that nothing is exported where the environment asks for it.
    #[cfg(not(feature = "otel"))]
    pub(super) fn start(config: &Config, _: Option<&Arc<Metrics>>) -> io::Result<Self> {
        settings(config).map(|_| Self {})
    }

    /// Whether anything is exported.
    pub(super) fn is_on(&self) -> bool {
        #[cfg(feature = "otel")]
        return self.exporter.is_some();
        #[cfg(not(feature = "otel"))]
        return false;
    }

    /// What has become of what was to be exported, if anything is.
    pub(super) fn stats(&self) -> Option<ExporterStats> {
        #[cfg(feature = "otel")]
        return self.exporter.as_ref().map(|(exporter, _)| exporter.stats().clone());
        #[cfg(not(feature = "otel"))]
        return None;
    }

    /// Who wants to hear of spans.
    #[cfg(feature = "otel")]
    pub(super) fn observers(&self) -> Vec<Observer> {
        let exporters = self.exporter.iter().filter(|(exporter, _)| exporter.wants_spans());
        let observer = |(_, forwarder): &(_, Addr<Forwarder>)| Observer {
            spans: Some(forwarder.clone().recipient()),
            logs: None,
            filter: ObserverFilter::default(),
            cut: Arc::new(|| log::error!("the exporter fell behind and hears of no more spans")),
        };
        exporters.map(observer).collect()
    }

    /// Nobody.
    #[cfg(not(feature = "otel"))]
    pub(super) fn observers(&self) -> Vec<Observer> {
        Vec::new()
    }

    /// Who wants to have what is logged.
    #[cfg(feature = "otel")]
    pub(super) fn log_sinks(&self) -> Vec<Arc<dyn LogSink>> {
        let exporters = self.exporter.iter().filter(|(exporter, _)| exporter.wants_logs());
        let sink = |(exporter, _): &(Exporter, _)| -> Arc<dyn LogSink> {
            let exporter = exporter.clone();
            Arc::new(move |batch: &[Arc<LogRecord>]| exporter.take_logs(batch))
        };
        exporters.map(sink).collect()
    }

    /// Nobody.
    #[cfg(not(feature = "otel"))]
    pub(super) fn log_sinks(&self) -> Vec<Arc<dyn LogSink>> {
        Vec::new()
    }

    /// Sends what is left, within bounds of time. Called when the runtime has drained.
    pub(super) async fn finish(&self, runtime: &Runtime) {
        #[cfg(feature = "otel")]
        if let Some((exporter, forwarder)) = &self.exporter {
            let settled = async {
                runtime.observers_told().await;
                // a forwarder that is gone has nothing left
                let _ = forwarder.send(Settle).await;
            };
            if tokio::time::timeout(SETTLING, settled).await.is_err() {
                log::warn!("the last spans did not reach the exporter in time");
            }
            exporter.finish().await;
        }
        #[cfg(not(feature = "otel"))]
        std::future::ready(runtime).await;
    }
}

/// What is exported, once odd variables were told of.
fn settings(config: &Config) -> io::Result<Option<crate::telemetry::export::ExporterSettings>> {
    let variables = Variables::of(config);
    let asked = |name: &str| variables.value(name);
    let Exports { settings, warnings, problems } =
        config.telemetry.exports(&asked, config.environment);
    warnings.iter().for_each(|warning| log::warn!("{warning}"));
    match problems.first() {
        Some(problem) => Err(io::Error::other(problem.to_string())),
        None => Ok(settings),
    }
}

/// Names hosts alone: the rest of an address may hold a key.
#[cfg(feature = "otel")]
fn log_targets(settings: &ExporterSettings) {
    let ExporterSettings { traces, metrics, logs, .. } = settings;
    for (what, target) in [("traces", traces), ("metrics", metrics), ("logs", logs)] {
        if let Some(host) = target.as_ref().and_then(|target| target.url.host_str()) {
            log::info!("{what} are exported to {host}");
        }
    }
}
