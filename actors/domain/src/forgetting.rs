//! Deletion of a user: replaces the user's id wherever the user suspended, resumed, cancelled or
//! replayed, or is asked, and removes the data of the user's resumes.
//!
//! Facts and states are changed alike, so that applying the facts still gives the state. Outputs
//! that steps computed from the data stay.

use std::sync::Arc;

use serde_json::Value;

use crate::assignment::AskRules;
use crate::fact::{Fact, Others, Recorded, Replayed, Suspension};
use crate::principal::strike;
use crate::state::{Node, Resumed, Sequence, State};

impl Recorded {
    /// Removes a user; returns true if anything changed.
    pub fn forget(&mut self, user: &str) -> bool {
        let was_by = strike(&mut self.by, user);
        let fact = &mut self.fact;
        let was_inside = if let Fact::StepResumed { data, .. } | Fact::HoldLifted { data } = fact {
            if was_by {
                *data = Arc::new(Value::Null);
            }
            false
        } else if let Fact::StepSuspended { ask, .. } = fact {
            forget_assignee(ask, user)
        } else if let Fact::WorkflowSuspended { suspension, others, .. } = fact {
            let others = others.as_mut().is_some_and(|others| others.forget(user));
            suspension.forget(user) | others
        } else if let Fact::WorkflowStarted(start) = fact {
            let reversal = start.reversal.as_mut();
            let in_reversal =
                reversal.is_some_and(|reversal| forget_nodes(reversal.nodes.iter_mut(), user));
            start.replayed.as_mut().is_some_and(|replayed| replayed.forget(user)) | in_reversal
        } else {
            false
        };
        was_by | was_inside
    }

    /// Visits every user that the fact names.
    pub fn each_user(&self, visit: &mut dyn FnMut(&Arc<str>)) {
        if let Some(by) = &self.by {
            visit(&by.id);
        }
        if let Fact::StepSuspended { ask: Some(rules), .. } = &self.fact {
            rules.users().for_each(&mut *visit);
        }
        if let Fact::WorkflowStarted(start) = &self.fact {
            each_in(start.copied(), visit);
        }
    }
}

impl Replayed {
    /// Removes a user and the user's answer; returns true if anything changed.
    fn forget(&mut self, user: &str) -> bool {
        self.forget_answer(user) | forget_nodes(self.nodes.iter_mut(), user)
    }

    fn forget_answer(&mut self, user: &str) -> bool {
        let was_theirs = strike(&mut self.by, user);
        if was_theirs {
            self.answer = self.answer.take().map(|_| Arc::new(Value::Null));
        }
        was_theirs
    }
}

impl Suspension {
    /// Removes a user; returns true if anything changed.
    pub fn forget(&mut self, user: &str) -> bool {
        strike(&mut self.by, user)
    }
}

impl Others {
    /// Removes a user; returns true if anything changed.
    pub fn forget(&mut self, user: &str) -> bool {
        self.suspensions.iter_mut().fold(false, |any, other| other.forget(user) | any)
    }
}

impl State {
    /// Removes a user; returns true if anything changed.
    pub fn forget(&mut self, user: &str) -> bool {
        let mut any = forget_nodes(self.root.nodes.iter_mut(), user);
        if let Some(hold) = &mut self.hold {
            any |= strike(&mut hold.by, user);
        }
        if let Some(compensating) = &mut self.compensating {
            any |= strike(&mut compensating.by, user);
            let nodes = compensating.begun.iter_mut().map(|begun| &mut begun.node);
            any |= forget_nodes(nodes, user);
        }
        if let Some(end) = &mut self.end {
            any |= strike(&mut end.by, user);
        }
        if let Some(replayed) = &mut self.start.replayed {
            // A state has the nodes in its tree.
            any |= replayed.forget_answer(user);
        }
        if forget_resume(&mut self.hold_data, &mut self.hold_lifted, user) {
            // A hold that was lifted without data leaves nothing.
            (self.hold_data, self.hold_lifted) = (None, None);
            any = true;
        }
        if let Some(shown) = &mut self.announced_suspension {
            let mut struck = Suspension::clone(shown);
            if struck.forget(user) {
                *shown = Arc::new(struck);
                any = true;
            }
        }
        any
    }
}

fn forget_nodes<'n>(nodes: impl Iterator<Item = &'n mut Node>, user: &str) -> bool {
    nodes.fold(false, |any, node| {
        let in_node = forget_resume(&mut node.resume, &mut node.resumed, user);
        let is_asked = node.wait_mut().is_some_and(|wait| forget_assignee(&mut wait.ask, user));
        let given = node.questions.iter_mut().flat_map(|questions| questions.given_mut());
        let in_answers = given.fold(false, |any, given| {
            let was_theirs = strike(&mut given.by, user);
            if was_theirs {
                given.data = Arc::new(Value::Null);
            }
            any | was_theirs
        });
        let of_child = node.child.as_mut().and_then(|child| child.resumed.as_mut());
        let in_child = of_child.is_some_and(|resumed| strike(&mut resumed.by, user));
        let inside = node
            .branches
            .iter_mut()
            .fold(false, |any, Sequence { nodes, .. }| forget_slice(nodes, user) | any);
        any | in_node | in_answers | is_asked | in_child | inside
    })
}

fn forget_slice(nodes: &mut [Node], user: &str) -> bool {
    forget_nodes(nodes.iter_mut(), user)
}

fn forget_resume(
    data: &mut Option<Arc<Value>>,
    resumed: &mut Option<Box<Resumed>>,
    user: &str,
) -> bool {
    let was_theirs = resumed.as_mut().is_some_and(|resumed| strike(&mut resumed.by, user));
    if was_theirs {
        *data = data.take().map(|_| Arc::new(Value::Null));
    }
    was_theirs
}

fn forget_assignee(ask: &mut Option<Arc<AskRules>>, user: &str) -> bool {
    let named = ask.as_mut().filter(|rules| rules.users().any(|it| **it == *user));
    named.is_some_and(|rules| Arc::make_mut(rules).forget(user))
}

fn each_in(nodes: &[Node], visit: &mut dyn FnMut(&Arc<str>)) {
    for node in nodes {
        let of_child = node.child.as_ref().and_then(|child| child.resumed.as_ref());
        let resumed = [node.resumed.as_ref(), of_child].into_iter().flatten();
        resumed.filter_map(|resumed| resumed.by.as_deref()).for_each(|by| visit(&by.id));
        node.branches.iter().for_each(|lane| each_in(&lane.nodes, visit));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fact::{Start, Trace};
    use crate::ids::ExecutionId;
    use crate::plan::Plan;
    use crate::principal::Principal;
    use crate::time::Timestamp;
    use crate::trace::{EntityType, TraceOrigin};

    /// Data of a lifted hold that no step has taken yet must be the same before and after a
    /// restart.
    #[test]
    fn data_of_a_lifted_hold_is_removed_from_states_and_facts() {
        let map = json!({ "map": { "map": "1" } });
        let step =
            json!({ "id": "a", "name": "a", "purpose": "", "on_error": "fail", "kind": map });
        let definition = json!({ "id": "w", "name": "w", "purpose": "", "steps": [step] });
        let plan = Plan::compile(serde_json::from_value(definition).unwrap()).unwrap();
        let begin = || {
            let start = Start {
                workflow_id: Arc::from("w"),
                definition_hash: Arc::from("h"),
                input: Arc::new(json!(1)),
                user_id: None,
                conversation_id: None,
                context: Arc::new(json!({})),
                parent: None,
                depth: 0,
                replayed: None,
                reversal: None,
                trace: Trace::of("e", EntityType::Workflow, &Arc::from("w"), TraceOrigin::New),
            };
            State::begin(ExecutionId::trusted("e"), Box::new(start), Timestamp(1))
        };
        for data in [json!(null), json!("go")] {
            let facts = [
                Fact::HoldPlaced { reason: Arc::from("stop"), id: Some(Arc::from("s")) },
                Fact::HoldLifted { data: Arc::new(data.clone()) },
            ];
            let by = Some(Arc::new(Principal::verified("lea")));
            let recorded = facts.into_iter().zip(2..);
            let mut facts: Vec<Recorded> = recorded
                .map(|(fact, seq)| Recorded { seq, at: Timestamp(2), fact, by: by.clone() })
                .collect();
            let folded = |facts: &[Recorded]| {
                let mut state = begin();
                facts.iter().for_each(|it| state.apply(&plan, it).unwrap());
                state
            };
            let mut state = folded(&facts);
            assert_eq!(state.forget("lea"), !data.is_null(), "{data}");
            assert!(facts.iter_mut().all(|it| it.forget("lea")));
            // the estimate still includes removed data until the state is rebuilt
            let rebuilt = State { memory: state.memory, ..folded(&facts) };
            assert_eq!(state, rebuilt, "{data}");
            assert!(!state.forget("lea"));
        }
    }
}
