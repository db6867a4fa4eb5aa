//! Metrics of turns: calls of models and tools, and tokens.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use greenroom_actors::domain::message::ToolOutcome;
use greenroom_actors::ports::model::Usage;
use greenroom_actors::ports::store::{GenerationStep, Period, TurnErrorKind};
use greenroom_actors::registry::Registry;
use prometheus::Error;

use super::buckets;
use super::family::{Counters, Histograms, Maker, OTHER};

/// Values of the label `status` of calls of tools.
const TOOL_ENDS: [&str; 4] = ["completed", "error", "cancelled", DENIED];

/// Status of calls that were refused, and so not made.
const DENIED: &str = "denied";

/// Metrics of all turns. Turns are rare compared with facts, so their series are looked up each
/// time.
pub(super) struct Turns {
    input_tokens: Counters,
    output_tokens: Counters,
    reasoning_tokens: Counters,
    cached_tokens: Counters,
    inferences: Histograms,
    first_chunks: Histograms,
    tool_durations: Histograms,
    tool_calls: Counters,
    names: RwLock<Arc<Names>>,
}

/// Names that labels may have.
#[derive(Clone)]
struct Names {
    agents: HashSet<String>,
    models: HashSet<String>,
    tools: HashSet<String>,
}

impl Turns {
    pub(super) fn new(maker: &Maker<'_>, registry: &Registry) -> Result<Self, Error> {
        let names = Names::of(registry);
        let tokens = |kind: &str, what: &str| {
            let name = format!("gen_ai_client_inference_usage_{kind}_tokens_total");
            maker.counters(&name, what, &["agent", "model"])
        };
        let seconds =
            |name, help, labels: &[&str]| maker.histograms(name, help, labels, buckets::GEN_AI);
        let tool = ["tool", "status"];
        let tool_calls =
            maker.counters("greenroom_tool_calls_total", "Tool calls by agents", &tool)?;
        for name in &names.tools {
            TOOL_ENDS.iter().for_each(|end| drop(tool_calls.of(&[name, end])));
        }
        Ok(Self {
            input_tokens: tokens("input", "Input tokens of models")?,
            output_tokens: tokens("output", "Output tokens of models, including reasoning")?,
            reasoning_tokens: tokens("reasoning_output", "Reasoning tokens of models")?,
            cached_tokens: tokens(
                "cache_read_input",
                "Input tokens of models that the provider read from its cache",
            )?,
            inferences: seconds(
                "gen_ai_client_inference_duration_seconds",
                "Duration of model requests, including retries",
                &["model", "status"],
            )?,
            first_chunks: seconds(
                "gen_ai_client_inference_time_to_first_chunk_seconds",
                "Time to first chunk of streamed model responses",
                &["model"],
            )?,
            tool_durations: seconds(
                "gen_ai_execute_tool_duration_seconds",
                "Duration of tool calls by agents",
                &tool,
            )?,
            tool_calls,
            names: RwLock::new(Arc::new(names)),
        })
    }

    /// Adds the names of a registry; known names stay.
    pub(super) fn follow(&self, registry: &Registry) {
        let Names { agents, models, tools } = Names::of(registry);
        for name in &tools {
            TOOL_ENDS.iter().for_each(|end| drop(self.tool_calls.of(&[name, end])));
        }
        let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        let mut all = Names::clone(&names);
        all.agents.extend(agents);
        all.models.extend(models);
        all.tools.extend(tools);
        *names = Arc::new(all);
    }

    fn names(&self) -> Arc<Names> {
        Arc::clone(&self.names.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn count(&self, agent: &str, turn: &GenerationStep) {
        let timing = &turn.timing;
        let names = self.names();
        let agent = known(&names.agents, agent);
        let model = timing.served.as_ref().map_or(OTHER, |it| known(&names.models, &it.model));
        self.count_tokens(&[agent, model], &turn.usage);
        if let Some(asked) = timing.chat {
            let status = match timing.error.as_ref().map(|error| error.kind) {
                None => "completed",
                Some(TurnErrorKind::Stopped) => "cancelled",
                Some(
                    TurnErrorKind::RateLimited
                    | TurnErrorKind::Auth
                    | TurnErrorKind::Timeout
                    | TurnErrorKind::Unavailable
                    | TurnErrorKind::Other,
                ) => "error",
            };
            if let Some(seconds) = seconds_of(asked) {
                self.inferences.of(&[model, status]).observe(seconds);
            }
            if let Some(first) = timing.first_piece {
                let waited = Duration::from_millis(first.ms_since(asked.start));
                self.first_chunks.of(&[model]).observe(waited.as_secs_f64());
            }
        }
        self.count_tools(&names, turn);
    }

    fn count_tokens(&self, labels: &[&str], usage: &Usage) {
        let rows = [
            (&self.input_tokens, usage.prompt_tokens),
            (&self.output_tokens, usage.completion_tokens),
            (&self.reasoning_tokens, usage.reasoning_tokens),
            (&self.cached_tokens, usage.cached_input_tokens),
        ];
        for (tokens, count) in rows {
            if count > 0 {
                tokens.of(labels).inc_by(count);
            }
        }
    }

    fn count_tools(&self, names: &Names, turn: &GenerationStep) {
        for (index, call) in turn.tool_calls.iter().enumerate() {
            // a call without a period never started
            let Some(period) = turn.timing.calls.get(index) else { continue };
            let end = match turn.result_of(index).map(|result| &result.outcome) {
                Some(ToolOutcome::Output(_)) => 0,
                Some(ToolOutcome::Error(_)) => 1,
                Some(ToolOutcome::Denied(_)) => 3,
                None => 2,
            };
            let labels = [known(&names.tools, &call.tool_name), TOOL_ENDS[end]];
            self.tool_calls.of(&labels).inc();
            if let Some(seconds) = seconds_of(*period).filter(|_| TOOL_ENDS[end] != DENIED) {
                self.tool_durations.of(&labels).observe(seconds);
            }
        }
    }
}

impl Names {
    fn of(registry: &Registry) -> Self {
        // includes the built-in tool that delegates to sub-agents
        let tools = registry.agents.values().filter_map(|agent| registry.tools_of(agent).ok());
        let of_agents = tools.flatten().map(|tool| tool.spec.name.clone());
        Self {
            agents: registry.agents.keys().cloned().collect(),
            models: registry.models.values().map(|model| model.name().to_owned()).collect(),
            tools: registry.tools.keys().cloned().chain(of_agents).collect(),
        }
    }
}

fn known<'a>(names: &HashSet<String>, name: &'a str) -> &'a str {
    if names.contains(name) { name } else { OTHER }
}

fn seconds_of(period: Period) -> Option<f64> {
    period.end.map(|end| Duration::from_millis(end.ms_since(period.start)).as_secs_f64())
}
