//! Metrics of generations, counted when they end.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use greenroom_actors::ports::store::{GenerationRecord, GenerationStatus};
use greenroom_actors::registry::Registry;
use prometheus::{Error, Histogram, IntCounter};

use super::buckets;
use super::family::{Counters, Histograms, Maker, OTHER};

/// Values of the label `status`.
const ENDS: [&str; 3] = ["completed", "error", "cancelled"];

/// Metrics of all generations.
pub(super) struct Generations {
    counts: Counters,
    durations: Histograms,
    agents: RwLock<HashMap<String, Arc<AgentSeries>>>,
    /// Series of agents that are no longer configured.
    other: Arc<AgentSeries>,
}

struct AgentSeries {
    name: String,
    ended: [IntCounter; 3],
    durations: [OnceLock<Histogram>; 3],
}

impl Generations {
    pub(super) fn new(maker: &Maker<'_>, registry: &Registry) -> Result<Self, Error> {
        let labels = ["agent", "status"];
        let ended =
            maker.counters("greenroom_generations_total", "Generations finished", &labels)?;
        let durations = maker.histograms(
            "gen_ai_invoke_agent_duration_seconds",
            "Time that generations worked, without waits for people",
            &labels,
            buckets::GEN_AI,
        )?;
        let other = Arc::new(AgentSeries::new(&ended, OTHER));
        let generations = Self { counts: ended, durations, agents: RwLock::default(), other };
        generations.follow(registry);
        Ok(generations)
    }

    /// Adds the agents of a registry.
    pub(super) fn follow(&self, registry: &Registry) {
        let mut agents = self.agents.write().unwrap_or_else(PoisonError::into_inner);
        for id in registry.agents.keys() {
            let series = || Arc::new(AgentSeries::new(&self.counts, id));
            agents.entry(id.clone()).or_insert_with(series);
        }
    }

    /// Counts an end. `worked` is the time without that in which it waited for people.
    pub(super) fn ended(&self, record: &GenerationRecord, worked: Option<Duration>) {
        let agents = self.agents.read().unwrap_or_else(PoisonError::into_inner);
        let agent = Arc::clone(agents.get(&record.agent_id).unwrap_or(&self.other));
        drop(agents);
        let end = match record.status {
            GenerationStatus::Completed => 0,
            GenerationStatus::Error => 1,
            GenerationStatus::Cancelled => 2,
            // a restart continues it; counted when it ends
            GenerationStatus::Working | GenerationStatus::Suspended => return,
        };
        agent.ended[end].inc();
        let Some(ended_at) = record.end_time else { return };
        let labels = || [agent.name.as_str(), ENDS[end]];
        let series = agent.durations[end].get_or_init(|| self.durations.of(&labels()));
        let lasted = || Duration::from_millis(ended_at.ms_since(record.start_time));
        series.observe(worked.unwrap_or_else(lasted).as_secs_f64());
    }
}

impl AgentSeries {
    fn new(ended: &Counters, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ended: ENDS.map(|end| ended.of(&[name, end])),
            durations: Default::default(),
        }
    }
}
