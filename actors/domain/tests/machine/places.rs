//! Places of a step: in every container, and in nested containers.

use greenroom_domain::definition::StepDefinition;
use serde_json::{Value, json};

use crate::machine::build::{all, branch, for_each, race, repeat, when};

/// Output of a container as a function of its block's output.
type Gives = fn(Value) -> Value;

/// A container around one block.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    around: fn(&str, Vec<StepDefinition>) -> StepDefinition,
    /// Text between its id and the step inside.
    inside: &'static str,
    /// Output as a function of its block's output.
    gives: Gives,
}

const KINDS: [Kind; 7] = [
    Kind {
        name: "andAll",
        around: |id, steps| all(id, [("only", steps)]),
        inside: "/only/",
        gives: |output| json!([output]),
    },
    Kind {
        name: "andRace",
        around: |id, steps| race(id, [("only", steps)]),
        inside: "/only/",
        gives: |output| output,
    },
    Kind {
        name: "andWhen",
        around: |id, steps| when(id, "true", steps),
        inside: "/then/",
        gives: |output| output,
    },
    Kind {
        name: "andBranch",
        around: |id, steps| branch(id, vec![("true", steps)], None),
        inside: "/case1/",
        gives: |output| output,
    },
    Kind {
        name: "andForEach",
        around: |id, steps| for_each(id, "[data]", 1, steps),
        inside: "[0]/",
        gives: |output| json!([output]),
    },
    Kind {
        name: "andDoWhile",
        around: |id, steps| repeat(id, false, "false", 1, steps),
        inside: "[0]/",
        gives: |output| output,
    },
    Kind {
        name: "andDoUntil",
        around: |id, steps| repeat(id, true, "true", 1, steps),
        inside: "[0]/",
        gives: |output| output,
    },
];

/// Place of the step `a`, with the containers around it, innermost first.
pub(crate) struct Place {
    pub(crate) path: String,
    pub(crate) around: Vec<(String, Gives)>,
}

impl Place {
    pub(crate) fn of(kinds: &[&Kind]) -> Self {
        let mut path = String::new();
        let mut around = Vec::new();
        for (depth, kind) in kinds.iter().enumerate() {
            path.push_str(&format!("c{depth}"));
            around.push((path.clone(), kind.gives));
            path.push_str(kind.inside);
        }
        path.push('a');
        around.reverse();
        Self { path, around }
    }

    /// Returns the lines of the containers and of the execution after the output of the block.
    pub(crate) fn completes(&self, output: impl Into<Value>) -> Vec<String> {
        let mut output = output.into();
        let mut lines = Vec::new();
        for (path, gives) in &self.around {
            output = gives(output);
            lines.push(format!("{path} gives {output}"));
        }
        lines.push(format!("completed {output}"));
        lines
    }

    pub(crate) fn result(&self, output: impl Into<Value>) -> Value {
        self.around.iter().fold(output.into(), |output, (_, gives)| gives(output))
    }

    /// Returns the lines after the failure of the step.
    pub(crate) fn fails(&self, error: &str) -> Vec<String> {
        let all = std::iter::once(&self.path).chain(self.around.iter().map(|(path, _)| path));
        let mut lines: Vec<_> = all.map(|path| format!("{path} fails: {error}")).collect();
        lines.push(format!("failed at a: {error}"));
        lines
    }
}

pub(crate) fn definition(
    kinds: &[&Kind],
    step: StepDefinition,
    outermost: fn(StepDefinition) -> StepDefinition,
) -> StepDefinition {
    let levels = kinds.iter().enumerate().rev();
    let around =
        |step, (depth, kind): (usize, &&Kind)| (kind.around)(&format!("c{depth}"), vec![step]);
    outermost(levels.fold(step, around))
}

/// Returns each kind, and each kind inside each kind.
pub(crate) fn everywhere() -> Vec<Vec<&'static Kind>> {
    static ALL: [Kind; 7] = KINDS;
    let twice = ALL.iter().flat_map(|outer| ALL.iter().map(move |inner| vec![outer, inner]));
    ALL.iter().map(|kind| vec![kind]).chain(twice).collect()
}
