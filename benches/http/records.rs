//! Outcomes of requests to the bare server, which it stores.

use std::sync::Arc;

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::domain::usage::Usage;
use serde_json::{Value, json};

/// Outcome of a request.
pub(crate) struct Record {
    pub(crate) id: Arc<str>,
    pub(crate) at: Timestamp,
    pub(crate) change: Change,
}

/// Change of what is stored under the id.
pub(crate) enum Change {
    /// An execution of three steps, each of which has added one.
    Noop3 { input: Value, n: i64 },
    /// An execution that waits in its first step. `suspension` is what the caller sees.
    Suspend { input: Value, reason: String, suspension: Value },
    /// The same execution, resumed and completed.
    Resume { data: Value, result: Value },
    /// A generation whose text repeats its prompt.
    Generate { agent: String, text: String, usage: Usage },
}

/// A small row of the SQLite store, under the id of the record.
pub(crate) struct Row {
    pub(crate) seq: i64,
    pub(crate) kind: &'static str,
    pub(crate) body: String,
}

impl Change {
    /// Returns the rows of the SQLite store.
    pub(crate) fn rows(&self) -> Vec<Row> {
        match self {
            Self::Noop3 { input, n } => {
                let mut rows = vec![row(0, "started", input)];
                let steps =
                    (1..=3).map(|step| row(step, "step-completed", &json!({ "n": n + step })));
                rows.extend(steps);
                rows.push(row(4, "completed", &json!({ "n": n + 3 })));
                rows
            }
            Self::Suspend { input, suspension, .. } => vec![
                row(0, "started", input),
                row(1, "step-started", &json!({ "step": "manager" })),
                row(2, "suspended", suspension),
            ],
            Self::Resume { data, result } => vec![
                row(3, "resumed", data),
                row(4, "step-completed", &json!({ "approved": data["approved"] })),
                row(5, "completed", result),
            ],
            Self::Generate { agent, text, usage } => {
                let record = json!({ "agent": agent, "input": text, "text": text, "usage": usage });
                vec![row(0, "generated", &record)]
            }
        }
    }
}

fn row(seq: i64, kind: &'static str, body: &Value) -> Row {
    Row { seq, kind, body: body.to_string() }
}
