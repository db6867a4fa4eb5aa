//! Compilation of compensations.

use std::sync::{Arc, LazyLock};

use serde_json::json;

use super::Compiler;
use crate::definition::{Body, RetryPolicy, StepDefinition, WorkflowDefinition};
use crate::plan::{AfterLastAttempt, Step, Work};
use crate::schema::Schema;

/// Answers to a compensation that failed.
static ANSWER: LazyLock<Option<Schema>> = LazyLock::new(|| {
    let schema = json!({
        "type": "object",
        "properties": {
            "action": {
                "enum": ["retry", "skip"],
                "description": "retry: compensate again; skip: it was done by hand, or is not needed",
            },
            "output": { "description": "recorded as the output of a compensation that is skipped" },
        },
        "required": ["action"],
        "additionalProperties": false,
    });
    Schema::compile(&schema).ok()
});

impl Compiler {
    /// Compiles the compensation of a step, which has the id of the step.
    pub(super) fn compensation(&mut self, step: &StepDefinition) -> Option<Box<Step>> {
        let Some(rule) = step.compensate.as_deref() else {
            return self.reversal(step);
        };
        let kind = step.kind.step_type();
        if !kind.can_compensate() {
            let inside = !step.kind.blocks().is_empty();
            let cure = if inside { "; the steps in its blocks can be" } else { "" };
            let message = format!("{} cannot be compensated{cure}", kind.name());
            self.problem("compensate", &message);
            return None;
        }
        self.place.push("compensate".to_owned());
        self.check_retry(&rule.retry);
        let retry = Some(self.retry(&rule.retry));
        let work = if !rule.kind.step_type().is_compensation() {
            self.problem("", &format!("{} cannot compensate a step", rule.kind.name()));
            None
        } else if let Some(Body::Map(_)) = rule.kind.body() {
            self.problem("map", "a compensation acts outside: run, http, command, tool, workflow");
            None
        } else {
            self.work(&rule.kind, 0)
        };
        self.place.pop();
        self.compensates = true;
        Some(Box::new(Step { retry, timeout_ms: rule.timeout_ms, ..undoing(&step.id, work?) }))
    }

    /// Compiles the compensation of an andWorkflow step that has none in its definition.
    fn reversal(&mut self, step: &StepDefinition) -> Option<Box<Step>> {
        step.kind.child_workflow()?;
        self.compensates = true;
        let retry = Some(self.retry(&RetryPolicy::default()));
        Some(Box::new(Step { retry, ..undoing(&step.id, Work::Reversal) }))
    }

    pub(super) fn check_compensates(&mut self, definition: &WorkflowDefinition) {
        if definition.compensate_on_cancel && !self.compensates {
            self.problem("compensate_on_cancel", "no step has a `compensate`");
        }
    }
}

/// Returns a compensation of the step with this id, without retries and timeout.
fn undoing(id: &str, work: Work) -> Step {
    Step {
        id: Arc::from(id),
        work,
        suspend: None,
        input_schema: None,
        output_schema: None,
        suspend_schema: None,
        resume_schema: ANSWER.clone(),
        retry: None,
        timeout_ms: None,
        on_error: AfterLastAttempt::Ask,
        is_tap: false,
        compensate: None,
    }
}
