//! The configured exporter of telemetry: its sources of spans and log records, and its end.

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
    futures_util::FutureExt as _,
    greenroom_actors::observe::log_record::LogRecord,
    greenroom_actors::observe::span::ObserverFilter,
    greenroom_actors::ports::clock::SystemClock,
    std::time::Duration,
};

/// Maximum time for the last spans to reach the exporter when the server stops.
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
        let gather = metrics.cloned().map(|metrics| {
            Box::new(move || {
                let metrics = Arc::clone(&metrics);
                async move { metrics.gather(&metrics.stored().await) }.boxed()
            }) as Gather
        });
        let Some(settings) = settings(config)? else { return Ok(Self { exporter: None }) };
        log_targets(&settings);
        let exporter = Exporter::start(settings, Arc::new(SystemClock), gather)?;
        let forwarder = Forwarder::launch(exporter.clone());
        Ok(Self { exporter: Some((exporter, forwarder)) })
    }

    /// Warns if a collector is configured, because this build cannot export.
    #[cfg(not(feature = "otel"))]
    pub(super) fn start(config: &Config, _: Option<&Arc<Metrics>>) -> io::Result<Self> {
        settings(config).map(|_| Self {})
    }

    /// Returns true if anything is exported.
    pub(super) fn is_on(&self) -> bool {
        #[cfg(feature = "otel")]
        return self.exporter.is_some();
        #[cfg(not(feature = "otel"))]
        return false;
    }

    /// Returns the counters of the exporter, if there is one.
    pub(super) fn stats(&self) -> Option<ExporterStats> {
        #[cfg(feature = "otel")]
        return self.exporter.as_ref().map(|(exporter, _)| exporter.stats().clone());
        #[cfg(not(feature = "otel"))]
        return None;
    }

    /// Returns the observers of spans.
    #[cfg(feature = "otel")]
    pub(super) fn observers(&self) -> Vec<Observer> {
        let exporters = self.exporter.iter().filter(|(exporter, _)| exporter.exports_spans());
        let observer = |(_, forwarder): &(_, Addr<Forwarder>)| Observer {
            spans: Some(forwarder.clone().recipient()),
            logs: None,
            filter: ObserverFilter::default(),
            disconnect: Arc::new(|| {
                log::error!("disconnected the exporter: it fell behind; restart to export spans");
            }),
        };
        exporters.map(observer).collect()
    }

    #[cfg(not(feature = "otel"))]
    pub(super) fn observers(&self) -> Vec<Observer> {
        Vec::new()
    }

    /// Returns the sinks of log records.
    #[cfg(feature = "otel")]
    pub(super) fn log_sinks(&self) -> Vec<Arc<dyn LogSink>> {
        let exporters = self.exporter.iter().filter(|(exporter, _)| exporter.exports_logs());
        let sink = |(exporter, _): &(Exporter, _)| -> Arc<dyn LogSink> {
            let exporter = exporter.clone();
            Arc::new(move |batch: &[Arc<LogRecord>]| exporter.take_logs(batch))
        };
        exporters.map(sink).collect()
    }

    #[cfg(not(feature = "otel"))]
    pub(super) fn log_sinks(&self) -> Vec<Arc<dyn LogSink>> {
        Vec::new()
    }

    /// Sends the remaining items, with a timeout. Call once the runtime has drained.
    pub(super) async fn finish(&self, runtime: &Runtime) {
        #[cfg(feature = "otel")]
        if let Some((exporter, forwarder)) = &self.exporter {
            let settled = async {
                runtime.observers_settled().await;
                // fails if the forwarder has ended; then nothing remains
                let _ = forwarder.send(Settle).await;
            };
            if tokio::time::timeout(SETTLING, settled).await.is_err() {
                log::warn!("the last spans are lost: the exporter did not receive them in time");
            }
            exporter.finish().await;
        }
        #[cfg(not(feature = "otel"))]
        std::future::ready(runtime).await;
    }
}

/// Returns the settings of the exporter, if there is one, and logs warnings about them.
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

/// Logs hosts and ports of the targets; the rest of a URL may contain a key.
#[cfg(feature = "otel")]
fn log_targets(settings: &ExporterSettings) {
    let ExporterSettings { traces, metrics, logs, .. } = settings;
    for (what, target) in [("traces", traces), ("metrics", metrics), ("logs", logs)] {
        if let Some(target) = target {
            log::info!("exporting {what} to {}", target.host());
        }
    }
}
