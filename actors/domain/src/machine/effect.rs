//! What should be at work now, outside the machine.

use std::sync::Arc;

use serde_json::Value;

use crate::ids::{ExecutionId, StepPath};
use crate::machine::scope::Named;
use crate::machine::{Machine, Moment};
use crate::plan::{Step, Work, WorkClass};
use crate::state::{Node, Phase};

/// Work that the record says has begun.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    pub path: StepPath,
    pub attempt: u32,
    pub kind: EffectKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectKind {
    Call,
    Agent,
    Child,
}

/// What an agent is asked.
#[derive(Debug, Clone)]
pub struct AgentCall {
    pub agent: Arc<str>,
    pub prompt: String,
    pub schema: Option<Arc<Value>>,
    pub options: Option<Value>,
    pub timeout_ms: Option<u64>,
    /// Attempts that failed by themselves before this one; those that a crash cut off not counted.
    pub retry: u32,
}

/// What a child is started with.
#[derive(Debug, Clone)]
pub struct ChildCall {
    pub child: ExecutionId,
    pub workflow: Arc<str>,
    pub input: Arc<Value>,
    pub timeout_ms: Option<u64>,
    /// Events were durable up to here when the child could start.
    pub since_seq: u64,
}

impl Machine {
    /// Everything that should be at work, as far as the facts up to `durable_seq` say: work
    /// begins only after the fact of its beginning can no longer be lost.
    pub fn effects(&self, durable_seq: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.state.end.is_some() {
            return effects;
        }
        self.state.each_live_node(&self.plan, &mut |_, path, step, node| {
            if let Some(kind) = self.effect_of(step, node, durable_seq) {
                effects.push(Effect { path: Arc::from(path), attempt: node.attempt, kind });
            }
        });
        effects
    }

    /// Whether something is at work that memory must wait for. A child that waits is not.
    pub fn has_work(&self) -> bool {
        self.goes_on
            || self.effects(u64::MAX).iter().any(|effect| {
                effect.kind != EffectKind::Child
                    || self.node(&effect.path).is_some_and(|(_, node)| node.phase == Phase::Running)
            })
    }

    fn effect_of(&self, step: &Step, node: &Node, durable_seq: u64) -> Option<EffectKind> {
        if node.since_seq > durable_seq {
            return None;
        }
        // What a crash cut off is not at work until another attempt has begun.
        let is_running = node.phase == Phase::Running && !self.unrecovered;
        match step.work.class() {
            WorkClass::Outside if is_running => {
                let is_agent = matches!(step.work, Work::Agent(_));
                Some(if is_agent { EffectKind::Agent } else { EffectKind::Call })
            }
            // A child lives by itself, and reports also while it waits.
            WorkClass::Child if node.is_live() => node.child.as_ref().map(|_| EffectKind::Child),
            WorkClass::Outside
            | WorkClass::Child
            | WorkClass::Pure
            | WorkClass::Container
            | WorkClass::Timer => None,
        }
    }

    /// What the agent at a path is asked, or why that cannot be said.
    pub fn agent_call(&self, path: &str, moment: &Moment<'_>) -> Option<Result<AgentCall, String>> {
        let (step, node) = self.node(path)?;
        let Work::Agent(work) = &step.work else { return None };
        let prompt = match &work.prompt {
            Some(template) => {
                let named = Named::by(|name| template.uses(name));
                let scope = self.scope(path, &node.input, Some(node), named, moment);
                template.render(&scope).map_err(|error| format!("prompt: {error}"))
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

    /// What the child at a path is started with.
    pub fn child_call(&self, path: &str) -> Option<ChildCall> {
        let (step, node) = self.node(path)?;
        let child = node.child.as_ref()?;
        Some(ChildCall {
            child: child.id.clone(),
            workflow: Arc::clone(&child.workflow),
            input: Arc::clone(&child.input),
            timeout_ms: step.timeout_ms,
            since_seq: node.since_seq,
        })
    }
}
