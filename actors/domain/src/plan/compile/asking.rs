//! Compilation of assignments.

use super::Compiler;
use crate::assignment::{ASSIGNEES_MAX, Assignee, REMINDERS_MAX};
use crate::definition::{EscalateRule, SuspendRule};
use crate::expression::Template;
use crate::plan::Asking;
use crate::plan::asking::Escalating;

impl Compiler {
    pub(super) fn asking(&mut self, rule: &SuspendRule) -> Asking {
        if rule.remind_ms.len() > REMINDERS_MAX {
            let message = format!("must be at most {REMINDERS_MAX} durations");
            self.problem("suspend.remind_ms", &message);
        }
        for (index, after_ms) in rule.remind_ms.iter().enumerate() {
            self.check_time(&format!("suspend.remind_ms.{index}"), *after_ms, rule.deadline_ms);
        }
        Asking {
            to: self.assignees("suspend.to", &rule.to),
            remind_ms: rule.remind_ms.clone(),
            escalate: rule.escalate.as_ref().map(|escalate| self.escalating(escalate, rule)),
        }
    }

    fn escalating(&mut self, escalate: &EscalateRule, rule: &SuspendRule) -> Escalating {
        // without it everyone is asked already, and an escalation would exclude most of them
        if rule.to.iter().all(|to| *to == Assignee::NotSelf.to_string()) {
            self.problem("suspend.escalate", "requires a user or a role in `to`");
        }
        if escalate.to.is_empty() {
            self.problem("suspend.escalate.to", "must not be empty");
        }
        let EscalateRule { after_ms, to } = escalate;
        self.check_time("suspend.escalate.after_ms", *after_ms, rule.deadline_ms);
        Escalating { after_ms: *after_ms, to: self.assignees("suspend.escalate.to", to) }
    }

    fn check_time(&mut self, key: &str, after_ms: u64, deadline_ms: Option<u64>) {
        if after_ms == 0 {
            self.problem(key, "must be longer than 0ms");
        }
        if deadline_ms.is_some_and(|deadline_ms| after_ms >= deadline_ms) {
            self.problem(key, "must be shorter than the `deadline`");
        }
    }

    fn assignees(&mut self, key: &str, texts: &[String]) -> Vec<Template> {
        if texts.len() > ASSIGNEES_MAX {
            self.problem(key, &format!("must be at most {ASSIGNEES_MAX} users and roles"));
        }
        let mut templates = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            let key = format!("{key}.{index}");
            if is_constant(text)
                && let Err(error) = text.parse::<Assignee>()
            {
                self.problem(&key, &error.to_string());
            }
            templates.extend(self.template(&key, Some(text)));
        }
        templates
    }
}

/// Returns true if a template renders to itself.
fn is_constant(template: &str) -> bool {
    !["{{", "{%", "{#"].into_iter().any(|code| template.contains(code))
}
