//! Compiled templates of those who are asked.

use crate::assignment::{AskRules, Assignee, Escalation, NotAnAssignee};
use crate::expression::{Scope, Template, shortened};
use crate::failure::AttemptFailure;

/// Longest part of a text that is no assignee in the message about it, in characters.
const SHOWN_CHARS_MAX: usize = 100;

/// Compiled rules of an ask.
#[derive(Debug, Default)]
pub struct Asking {
    pub to: Vec<Template>,
    pub remind_ms: Vec<u64>,
    pub escalate: Option<Escalating>,
}

/// Asks others in addition after a while.
#[derive(Debug)]
pub struct Escalating {
    pub after_ms: u64,
    pub to: Vec<Template>,
}

impl Asking {
    /// Renders the rules of one ask; `None` if nothing is ruled.
    pub(crate) fn render(&self, scope: &Scope) -> Result<Option<AskRules>, AttemptFailure> {
        let escalate = match &self.escalate {
            Some(Escalating { after_ms, to }) => {
                let to = assignees("suspend.escalate.to", to, scope)?;
                Some(Escalation { after_ms: *after_ms, to })
            }
            None => None,
        };
        let to = assignees("suspend.to", &self.to, scope)?;
        let rules = AskRules { to, remind_ms: self.remind_ms.clone(), escalate };
        Ok(Some(rules).filter(|rules| !rules.is_empty()))
    }
}

fn assignees(
    key: &str,
    templates: &[Template],
    scope: &Scope,
) -> Result<Vec<Assignee>, AttemptFailure> {
    let rendered = templates.iter().enumerate().map(|(index, template)| {
        let of = format!("{key}[{index}]: ");
        let text = template.render(scope);
        let text = text.map_err(|error| AttemptFailure::not_evaluated(&of, &error))?;
        text.parse().map_err(|error: NotAnAssignee| {
            let shown = shortened(&text, SHOWN_CHARS_MAX);
            AttemptFailure::expression(format!("{of}{error}, not \"{shown}\""))
        })
    });
    rendered.collect()
}
