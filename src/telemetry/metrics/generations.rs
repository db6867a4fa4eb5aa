//! Counts generations of agents when they have ended.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use greenroom_actors::ports::store::{GenerationRecord, GenerationStatus};
use greenroom_actors::registry::Registry;
use prometheus::{Error, Histogram, IntCounter};

use super::buckets;
use super::family::{Counters, Histograms, Maker, OTHER};

/// How generations end, as their metrics name it.
const ENDS: [&str; 3] = ["completed", "error", "cancelled"];

/// What is counted of all generations.
pub(super) struct Generations {
    counts: Counters,
    durations: Histograms,
    agents: RwLock<HashMap<String, Arc<AgentSeries>>>,
    /// Of generations whose agent is not configured any more.
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
        let ended = maker.counters(
            "greenroom_generations_total",
            "Generations of agents that ended",
            &labels,
        )?;
        let durations = maker.histograms(
            "gen_ai_invoke_agent_duration_seconds",
            "Generations of agents from their start to their end",
            &labels,
            buckets::GEN_AI,
        )?;
        let other = Arc::new(AgentSeries::new(&ended, OTHER));
        let generations = Self { counts: ended, durations, agents: RwLock::default(), other };
        generations.follow(registry);
        Ok(generations)
    }

    /// Takes in the agents of a registry.
    pub(super) fn follow(&self, registry: &Registry) {
        let mut agents = self.agents.write().unwrap_or_else(PoisonError::into_inner);
        for id in registry.agents.keys().filter(|id| !agents.contains_key(*id)).collect::<Vec<_>>()
        {
            agents.insert(id.clone(), Arc::new(AgentSeries::new(&self.counts, id)));
        }
    }

    pub(super) fn ended(&self, record: &GenerationRecord) {
        let agents = self.agents.read().unwrap_or_else(PoisonError::into_inner);
        let agent = Arc::clone(agents.get(&record.agent_id).unwrap_or(&self.other));
        drop(agents);
        let end = match record.status {
            GenerationStatus::Completed => 0,
            GenerationStatus::Error => 1,
            GenerationStatus::Cancelled => 2,
            // it goes on after a restart, and is counted then
            GenerationStatus::Working => return,
        };
        agent.ended[end].inc();
        let Some(ended_at) = record.end_time else { return };
        let labels = || [agent.name.as_str(), ENDS[end]];
        let series = agent.durations[end].get_or_init(|| self.durations.of(&labels()));
        let lasted = Duration::from_millis(ended_at.ms_since(record.start_time));
        series.observe(lasted.as_secs_f64());
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
