//! Metrics: series counted as events happen, and readings taken at each scrape.
//!
//! Labels are names of the configuration, routes and words of closed sets. Other names count under
//! `_other`; ids of executions and users are never labels.

mod buckets;
mod cluster;
mod executions;
mod family;
mod generations;
mod journal;
mod mcp;
mod readings;
mod requests;
mod stored;
mod turns;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::ports::meter::{JournalMeter, Meter};
use greenroom_actors::ports::store::{GenerationRecord, GenerationStep, Header};
use greenroom_actors::registry::Registry;
use prometheus::proto::MetricFamily;
use prometheus::{Encoder as _, Histogram, HistogramOpts, IntCounter, TextEncoder};

use self::executions::Executions;
use self::family::Maker;
use self::generations::Generations;
use self::journal::JournalSeries;
use self::stored::StoredCounts;
use self::turns::Turns;
use crate::telemetry::sources::Sources;

pub use self::requests::{Count, Gauged, RequestMeter, RequestSeries, UNMATCHED};
pub use self::stored::Stored;

/// The `Content-Type` of [`Metrics::text`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Metrics that are also served under a former name: new name, former name.
const FORMER_NAMES: [(&str, &str); 3] = [
    ("greenroom_executions_finished_total", "greenroom_executions_total"),
    ("greenroom_export_items_total", "greenroom_telemetry_items_total"),
    ("greenroom_executions_recovered_total", "greenroom_executions_rebuilt_total"),
];

/// All metrics of one server.
pub struct Metrics {
    registry: prometheus::Registry,
    runtime: Arc<RuntimeMeter>,
    journal: Arc<JournalSeries>,
    requests: Arc<RequestMeter>,
    /// Set once the server is assembled.
    sources: OnceLock<Sources>,
    stored_counts: StoredCounts,
}

/// Series fed by the actors. Independent of `Metrics`, because the runtime holds it.
struct RuntimeMeter {
    executions: Executions,
    generations: Generations,
    turns: Turns,
    timer_lag: Histogram,
    defects: IntCounter,
}

impl Metrics {
    /// Creates the metrics for the names of a registry, each with at most `series_max` series.
    pub fn new(registry: &Registry, series_max: usize) -> Result<Self, prometheus::Error> {
        let own = prometheus::Registry::new();
        let maker = Maker { registry: &own, series_max };
        let lag = HistogramOpts::new(
            "greenroom_timer_lag_seconds",
            "Delay between the time a timer was due and the time it fired",
        );
        let defects = maker.register(IntCounter::new(
            "greenroom_store_corrupt_reads_total",
            "Reads of the store that met a damaged record; the log names each record",
        )?)?;
        let runtime = RuntimeMeter {
            executions: Executions::new(&maker, registry)?,
            generations: Generations::new(&maker, registry)?,
            turns: Turns::new(&maker, registry)?,
            timer_lag: maker.register(Histogram::with_opts(lag.buckets(buckets::LAG.to_vec()))?)?,
            defects: defects.clone(),
        };
        let journal = JournalSeries::new(&maker, defects)?;
        let requests = RequestMeter::new(&maker)?;
        #[cfg(target_os = "linux")]
        own.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))?;
        Ok(Self {
            registry: own,
            runtime: Arc::new(runtime),
            journal: Arc::new(journal),
            requests: Arc::new(requests),
            sources: OnceLock::new(),
            stored_counts: StoredCounts::default(),
        })
    }

    /// Returns the meter that the runtime reports facts to.
    pub fn meter(&self) -> Arc<dyn Meter> {
        Arc::clone(&self.runtime) as _
    }

    /// Returns the meter that the writer of the store reports commits to.
    pub fn journal(&self) -> Arc<dyn JournalMeter> {
        Arc::clone(&self.journal) as _
    }

    /// Returns the meter of HTTP requests.
    pub fn requests(&self) -> &Arc<RequestMeter> {
        &self.requests
    }

    /// Adds series for the names of a new registry. Existing series stay: executions of a removed
    /// workflow continue, and counters never restart.
    pub fn follow(&self, registry: &Registry) {
        self.runtime.executions.follow(registry);
        self.runtime.generations.follow(registry);
        self.runtime.turns.follow(registry);
    }

    /// Sets the sources of readings. Only the first call has an effect.
    pub fn read_from(&self, sources: Sources) {
        let _ = self.sources.set(sources);
    }

    /// Returns the counts of what is stored for [`Metrics::gather`]; none before the server is
    /// assembled.
    pub async fn stored(&self) -> Stored {
        match self.sources.get() {
            Some(sources) => self.stored_counts.read(&sources.runtime).await,
            None => Stored::default(),
        }
    }

    /// Returns all families that have series, sorted by name. May read files, so call it on a
    /// thread that may block.
    pub fn gather(&self, stored: &Stored) -> Vec<MetricFamily> {
        let mut families = self.registry.gather();
        let sources = self.sources.get().into_iter();
        families.extend(sources.flat_map(|sources| sources.read(&self.requests, stored)));
        families.retain(|family| !family.get_metric().is_empty());
        for (name, former) in FORMER_NAMES {
            if let Some(family) = families.iter().find(|family| family.name() == name) {
                let mut alias = family.clone();
                alias.set_name(former.to_owned());
                alias.set_help(format!("Former name of {name}"));
                families.push(alias);
            }
        }
        families.sort_by(|one, other| one.name().cmp(other.name()));
        families
    }

    /// Returns all families in the text format of Prometheus, as [`CONTENT_TYPE`] declares it.
    pub fn text(&self, stored: &Stored) -> Result<Vec<u8>, prometheus::Error> {
        let mut bytes = Vec::new();
        TextEncoder::new().encode(&self.gather(stored), &mut bytes)?;
        Ok(bytes)
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Meter for RuntimeMeter {
    fn recorded(&self, header: &Header, facts: &[Recorded]) {
        self.executions.recorded(header, facts);
    }

    fn blocked(&self, header: &Header, path: &str, _: Duration) {
        self.executions.blocked(header, path);
    }

    fn waited(&self, header: &Header, wait: Duration) {
        self.executions.waited(header, wait);
    }

    fn timer_fired(&self, late: Duration) {
        self.timer_lag.observe(late.as_secs_f64());
    }

    fn generation_ended(
        &self,
        record: &GenerationRecord,
        turns: &mut dyn Iterator<Item = &GenerationStep>,
        worked: Option<Duration>,
    ) {
        self.generations.ended(record, worked);
        turns.for_each(|turn| self.turns.count(&record.agent_id, turn));
    }

    fn met_defect(&self) {
        self.defects.inc();
    }
}

#[cfg(test)]
mod tests;
