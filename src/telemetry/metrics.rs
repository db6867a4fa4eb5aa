//! Metrics: what is counted as it happens, and what is read when somebody asks.
//!
//! Labels are names of the configuration, routes and words of closed sets. What has no name there
//! counts under `_other`; ids of executions and users are no labels.

mod buckets;
mod executions;
mod family;
mod generations;
mod journal;
mod readings;
mod requests;
mod text;
mod turns;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::ports::meter::{JournalMeter, Meter};
use greenroom_actors::ports::store::{GenerationRecord, GenerationStep, Header};
use greenroom_actors::registry::Registry;
use prometheus::proto::MetricFamily;
use prometheus::{Histogram, HistogramOpts, IntCounter};

use self::executions::Executions;
use self::family::Maker;
use self::generations::Generations;
use self::journal::JournalSeries;
use self::turns::Turns;

pub use self::readings::{ReadStore, Sources, StoreReading};
pub use self::requests::{Gauged, RequestMeter, RequestSeries, UNMATCHED, UnreadBytes};
pub use self::text::Form;

/// All metrics of one server.
pub struct Metrics {
    registry: prometheus::Registry,
    runtime: Arc<RuntimeMeter>,
    journal: Arc<JournalSeries>,
    requests: Arc<RequestMeter>,
    /// Once the server stands.
    sources: OnceLock<Sources>,
}

/// What the actors tell. Knows nothing of where it is shown: the runtime owns it.
struct RuntimeMeter {
    executions: Executions,
    generations: Generations,
    turns: Turns,
    timer_lag: Histogram,
    defects: IntCounter,
}

impl Metrics {
    /// Metrics of what this registry has, each of at most `series_max` series.
    pub fn new(registry: &Registry, series_max: usize) -> Result<Self, prometheus::Error> {
        let own = prometheus::Registry::new();
        let maker = Maker { registry: &own, series_max };
        let lag = HistogramOpts::new(
            "greenroom_timer_lag_seconds",
            "How much later than it was due a timer came up",
        );
        let defects = maker.register(IntCounter::new(
            "greenroom_store_corrupt_reads_total",
            "Times that a record was read that makes no sense; the log names each",
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
        })
    }

    /// What the runtime tells its facts.
    pub fn meter(&self) -> Arc<dyn Meter> {
        Arc::clone(&self.runtime) as _
    }

    /// What the writer of the store tells its commits.
    pub fn journal(&self) -> Arc<dyn JournalMeter> {
        Arc::clone(&self.journal) as _
    }

    /// What counts requests.
    pub fn requests(&self) -> &Arc<RequestMeter> {
        &self.requests
    }

    /// Gives names of another registry their series. What had one keeps it: executions of a
    /// workflow that is gone go on, and counters do not begin anew.
    pub fn follow(&self, registry: &Registry) {
        self.runtime.executions.follow(registry);
        self.runtime.generations.follow(registry);
        self.runtime.turns.follow(registry);
    }

    /// Says what is read when somebody asks. Once; later ones are not taken.
    pub fn read_from(&self, sources: Sources) {
        let _ = self.sources.set(sources);
    }

    /// All of it, sorted by name; families without a series are left out. May read files: not for
    /// a thread that serves others.
    pub fn gather(&self) -> Vec<MetricFamily> {
        let mut families = self.registry.gather();
        let sources = self.sources.get().into_iter();
        families.extend(sources.flat_map(|sources| sources.read(&self.requests)));
        families.retain(|family| !family.get_metric().is_empty());
        families.sort_by(|one, other| one.name().cmp(other.name()));
        families
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
    ) {
        self.generations.ended(record);
        turns.for_each(|turn| self.turns.count(&record.agent_id, turn));
    }

    fn met_defect(&self) {
        self.defects.inc();
    }
}

#[cfg(test)]
mod tests;
