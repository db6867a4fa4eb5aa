//! Questions that the tools of steps ask people, and the answers that their next call gets.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::footprint::value::memory_bytes;
use crate::principal::Principal;
use crate::schema::Schema;

/// Member of an answer to a question that may be declined.
const ACTION: &str = "action";

/// A question of a tool, as recorded with the suspension of its step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// JSON Schema of the answer; `None` accepts everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub can_decline: bool,
    /// Value for the tool when it is called again. It is never shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memo: Option<Arc<Value>>,
}

/// Questions of the tool of a step so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Questions {
    pub newest: Arc<Question>,
    /// True if the newest one has no answer.
    pub is_open: bool,
    pub answers: Vec<Given>,
    /// The answer to the suspension of the step itself, before its tool asked: `resume` of
    /// expressions, so that the tool is called again with the same arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Given>,
}

/// An answer, as the tool gets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Given {
    pub data: Arc<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<Principal>>,
}

impl Question {
    /// Estimates its memory.
    pub(crate) fn bytes(&self) -> u64 {
        let of = memory_bytes;
        self.schema.as_ref().map_or(0, of) + self.memo.as_ref().map_or(0, |memo| of(memo))
    }

    /// Checks an answer. Returns it as the tool gets it, or the place where it is wrong.
    pub(crate) fn check(&self, data: &Arc<Value>) -> Result<Arc<Value>, String> {
        let compiled = self.schema.as_ref().map(Schema::compile);
        let checked = match &compiled {
            Some(Ok(schema)) => schema.check(data).map_err(|violation| violation.to_string()),
            // it has compiled before it was asked
            Some(Err(_)) | None => Ok(()),
        };
        match checked {
            Ok(()) if self.can_decline => Ok(Arc::new(accepted(data))),
            Ok(()) => Ok(Arc::clone(data)),
            Err(why) => match declined(data).filter(|_| self.can_decline) {
                Some(declined) => Ok(Arc::new(declined)),
                None => Err(why),
            },
        }
    }
}

impl Questions {
    /// Begins with the first question of a tool, after what resumed the step.
    pub(crate) fn first(newest: &Arc<Question>, before: Option<Given>) -> Box<Self> {
        Box::new(Self { newest: Arc::clone(newest), is_open: true, answers: Vec::new(), before })
    }

    /// Adds a question to those before.
    pub(crate) fn add(&mut self, newest: &Arc<Question>) {
        (self.newest, self.is_open) = (Arc::clone(newest), true);
    }

    /// Takes the data of a resume as the answer, if there is a question.
    pub(crate) fn answer(&mut self, data: &Arc<Value>, by: Option<&Arc<Principal>>) {
        if std::mem::take(&mut self.is_open) {
            // that of an older fact is as the tool gets it
            let data = self.newest.check(data).unwrap_or_else(|_| Arc::clone(data));
            self.answers.push(Given { data, by: by.cloned() });
        }
    }

    /// Returns all that people have given the step.
    pub(crate) fn given_mut(&mut self) -> impl Iterator<Item = &mut Given> {
        self.before.iter_mut().chain(&mut self.answers)
    }
}

/// Returns the answer to an ask that may be declined, as its tool gets it, if `data` declines.
pub fn declined(data: &Value) -> Option<Value> {
    let members = data.as_object().filter(|members| members.len() == 1)?;
    let action = members.get(ACTION)?.as_str()?;
    matches!(action, "decline" | "cancel").then(|| data.clone())
}

/// Returns an answer to an ask that could have been declined, as its tool gets it.
pub fn accepted(content: &Value) -> Value {
    json!({ ACTION: "accept", "content": content })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_match_or_decline() {
        let schema = json!({ "type": "object", "required": ["n"],
                             "properties": { "n": { "type": "integer" } } });
        let question = |can_decline| Question {
            schema: Some(schema.clone()),
            can_decline,
            ..Question::default()
        };
        let n = json!({ "n": 1 });
        let decline = json!({ "action": "decline" });
        for (can_decline, data, expected) in [
            (false, &n, Some(n.clone())),
            (true, &n, Some(json!({ "action": "accept", "content": n }))),
            (true, &decline, Some(decline.clone())),
            (false, &decline, None),
            (true, &json!({ "action": "accept" }), None),
            (true, &json!({ "action": "cancel", "n": "x" }), None),
        ] {
            let checked = question(can_decline).check(&Arc::new(data.clone()));
            assert_eq!(checked.ok().as_deref(), expected.as_ref(), "{data}");
        }
        let free = Question::default().check(&Arc::new(decline.clone()));
        assert_eq!(free, Ok(Arc::new(decline)));
    }
}
