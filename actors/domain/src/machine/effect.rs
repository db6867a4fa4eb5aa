//! Outside work that should be running.

use std::sync::Arc;

use serde_json::Value;

use crate::failure::AttemptFailure;
use crate::ids::{ExecutionId, StepPath};
use crate::machine::reversal::Reversed;
use crate::machine::scope::Named;
use crate::machine::touched::Touched;
use crate::machine::{Machine, Moment};
use crate::plan::{Step, WorkClass};
use crate::state::{Node, Phase};

/// Work that has begun according to the record.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    pub path: StepPath,
    pub attempt: u32,
    pub kind: EffectKind,
}

/// Kind of outside work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectKind {
    Call,
    Agent,
    Child,
}

/// A call of an agent.
#[derive(Debug, Clone)]
pub struct AgentCall {
    pub agent: Arc<str>,
    pub prompt: String,
    pub schema: Option<Arc<Value>>,
    pub options: Option<Value>,
    pub timeout_ms: Option<u64>,
    /// Number of failed attempts before this one, without those that a crash interrupted.
    pub retry: u32,
}

/// A start of a child.
#[derive(Debug, Clone)]
pub struct ChildCall {
    pub child: ExecutionId,
    pub workflow: Arc<str>,
    pub input: Arc<Value>,
    pub timeout_ms: Option<u64>,
    /// Number of the last event that is durable before the child may start.
    pub since_seq: u64,
    /// Present if the child compensates the steps of another one.
    pub reversed: Option<Reversed>,
    /// Children that have to end before it starts, the newest first: those of earlier attempts of a
    /// compensation.
    pub earlier: Vec<ExecutionId>,
}

impl Machine {
    /// Returns the work that should be running according to the facts up to `durable_seq`. Work
    /// starts only after its fact is durable.
    pub fn effects(&self, durable_seq: u64) -> Vec<Effect> {
        self.effects_in(&Touched::WHOLE, durable_seq)
    }

    /// Returns the work of [`Self::effects`] in a part of the execution.
    pub fn effects_in(&self, part: &Touched<'_>, durable_seq: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.state.end.is_some() {
            return effects;
        }
        let visit = &mut |_, path: &str, step: &Step, node: &Node| {
            if let Some(kind) = self.effect_of(step, node, durable_seq) {
                effects.push(Effect { path: Arc::from(path), attempt: node.attempt, kind });
            }
        };
        match &part.steps {
            None => self.state.each_live_node(&self.plan, visit),
            Some(steps) => {
                for path in steps {
                    self.state.each_live_node_at(&self.plan, path, visit);
                }
            }
        }
        effects
    }

    /// Returns true if this attempt of a step should be running.
    pub fn has_effect(&self, path: &StepPath, attempt: u32, durable_seq: u64) -> bool {
        let found = self.effects_in(&Touched::at(path), durable_seq);
        found.iter().any(|effect| effect.path == *path && effect.attempt == attempt)
    }

    /// Returns true if running work prevents unloading. A suspended child does not.
    pub fn has_work(&self) -> bool {
        let works = |step: &Step, node: &Node| match self.effect_of(step, node, u64::MAX) {
            Some(EffectKind::Child) => node.phase == Phase::Running,
            Some(EffectKind::Call | EffectKind::Agent) => true,
            None => false,
        };
        self.has_more || self.state.end.is_none() && self.state.has_live_node(&self.plan, &works)
    }

    fn effect_of(&self, step: &Step, node: &Node, durable_seq: u64) -> Option<EffectKind> {
        if node.since_seq > durable_seq {
            return None;
        }
        // An interrupted body is not running until its next attempt has begun.
        let is_running = node.phase == Phase::Running && !self.unrecovered;
        match step.work.class() {
            WorkClass::Outside if is_running => {
                let is_agent = step.work.agent().is_some();
                Some(if is_agent { EffectKind::Agent } else { EffectKind::Call })
            }
            // A child also reports while it is suspended.
            WorkClass::Child if node.is_live() => node.child.as_ref().map(|_| EffectKind::Child),
            WorkClass::Outside
            | WorkClass::Child
            | WorkClass::Pure
            | WorkClass::Container(_)
            | WorkClass::Timer => None,
        }
    }

    /// Returns the agent call of the step at a path, or the reason why it cannot be made.
    pub fn agent_call(
        &self,
        path: &str,
        moment: &Moment<'_>,
    ) -> Option<Result<AgentCall, AttemptFailure>> {
        let (step, node) = self.node(path)?;
        let work = step.work.agent()?;
        let prompt = match &work.prompt {
            Some(template) => {
                let named = Named::by(|name| template.uses(name));
                let scope = self.scope(path, &node.input, Some(node), named, moment);
                let prompt = template.render(&scope);
                prompt.map_err(|error| AttemptFailure::not_evaluated("prompt: ", &error))
            }
            None => Ok(match &*node.input {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            }),
        };
        Some(prompt.map(|prompt| AgentCall {
            agent: Arc::clone(&work.agent),
            prompt,
            schema: work.schema.clone(),
            options: work.options.clone(),
            timeout_ms: step.timeout_ms,
            retry: node.failures,
        }))
    }

    /// Returns the start of the child at a path.
    pub fn child_call(&self, path: &str) -> Option<ChildCall> {
        let (step, node) = self.node(path)?;
        let child = node.child.as_ref()?;
        Some(ChildCall {
            child: child.id.clone(),
            workflow: Arc::clone(&child.workflow),
            input: Arc::clone(&child.input),
            timeout_ms: step.timeout_ms,
            since_seq: node.since_seq,
            reversed: self.reversed(path),
            earlier: self.earlier_children((step, node), path),
        })
    }
}
