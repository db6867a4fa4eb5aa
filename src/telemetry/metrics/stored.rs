//! Counts that the store makes for a scrape.

use std::collections::BTreeMap;
use std::time::Duration;

use greenroom_actors::Runtime;
use greenroom_actors::ports::store::{AskKind, ExecutionCount, OpenAskCounts, Status};
use greenroom_actors::registry::Registry;
use greenroom_actors::runtime::BULK_WORKFLOW;
use prometheus::proto::{MetricFamily, MetricType};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::telemetry::metrics::family::OTHER;
use crate::telemetry::metrics::readings::{figures, gauge};

/// Maximum wait for the store; a scrape during its outage has everything else.
const STORE_MAX: Duration = Duration::from_secs(1);

/// Time between counts of asks, whose cost grows with their number.
const ASKS_EVERY: Duration = Duration::from_secs(10);

/// Counts of what is stored. A part is `None` if the store does not answer in time.
#[derive(Debug, Default)]
pub struct Stored {
    /// Executions, which the store counts as they change: right after a restart.
    executions: Option<Vec<ExecutionCount>>,
    asks: Option<OpenAskCounts>,
}

/// Reads the counts.
#[derive(Debug, Default)]
pub(super) struct StoredCounts {
    /// Time and outcome of the last count of asks. One that failed is not repeated earlier either.
    asks: Mutex<Option<(Instant, Option<OpenAskCounts>)>>,
}

impl StoredCounts {
    pub(super) async fn read(&self, runtime: &Runtime) -> Stored {
        let executions = async { timeout(STORE_MAX, runtime.counts()).await.ok()?.ok() };
        let (executions, asks) = tokio::join!(executions, self.asks(runtime));
        Stored { executions, asks }
    }

    async fn asks(&self, runtime: &Runtime) -> Option<OpenAskCounts> {
        let mut last = self.asks.lock().await;
        if let Some((at, counts)) = &*last
            && at.elapsed() < ASKS_EVERY
        {
            return counts.clone();
        }
        let counts = timeout(STORE_MAX, runtime.open_ask_counts()).await;
        let counts = counts.ok().and_then(Result::ok);
        *last = Some((Instant::now(), counts.clone()));
        counts
    }
}

impl Stored {
    pub(super) fn families(&self, runtime: &Runtime) -> Vec<MetricFamily> {
        let executions = self.executions.iter().map(|counts| of_executions(counts, runtime));
        let asks = self.asks.iter().flat_map(|counts| of_asks(counts, runtime));
        executions.chain(asks).collect()
    }
}

/// Returns the label of the executions of a workflow.
pub(super) fn label<'r>(registry: &'r Registry, workflow_id: &str) -> &'r str {
    match registry.workflows.get_key_value(workflow_id) {
        Some((name, _)) => name,
        None if workflow_id == BULK_WORKFLOW => BULK_WORKFLOW,
        None => OTHER,
    }
}

fn of_executions(counts: &[ExecutionCount], runtime: &Runtime) -> MetricFamily {
    let registry = runtime.registry();
    let mut sums: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    // a missing count is 0
    for workflow in registry.workflows.keys() {
        for status in Status::ALL {
            sums.insert((workflow, status.as_str()), 0);
        }
    }
    for ExecutionCount { workflow_id, status, count } in counts {
        let workflow = label(&registry, workflow_id);
        *sums.entry((workflow, status.as_str())).or_default() += count;
    }
    let rows = sums.into_iter().map(|((workflow, status), count)| {
        (vec![("workflow", workflow), ("status", status)], count)
    });
    let help = "Executions in the store by status";
    figures(MetricType::GAUGE, "greenroom_executions", help, rows)
}

fn of_asks(counts: &OpenAskCounts, runtime: &Runtime) -> [MetricFamily; 2] {
    // a missing count is 0
    let count = |kind| counts.by_kind.iter().find(|(of, _)| *of == kind).map_or(0, |(_, n)| *n);
    let rows = AskKind::ALL.map(|kind| (vec![("kind", kind.as_str())], count(kind)));
    let now = runtime.clock().now();
    let age = counts.oldest.map_or(0, |oldest| now.ms_since(oldest));
    [
        figures(
            MetricType::GAUGE,
            "greenroom_asks",
            "Open asks in the store, up to 10 seconds old",
            rows,
        ),
        gauge(
            "greenroom_asks_oldest_age_seconds",
            "Time since the oldest open ask was opened; 0 without one",
            Duration::from_millis(age),
        ),
    ]
}
