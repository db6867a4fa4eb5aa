//! Expressions and templates of a definition, with their keys.

use serde_json::Value;

use super::remarks::Form;
use crate::definition::{
    Body, CommandBody, HttpBody, KindText, Mapping, OnError, OnTimeout, StepDefinition, StepKind,
    SuspendRule, WorkflowDefinition,
};

/// An expression or a template.
pub(super) struct Text<'d> {
    /// Keys from the step down, or from the workflow down if it belongs to no step.
    pub(super) keys: Vec<String>,
    pub(super) source: &'d str,
    pub(super) form: Form,
    pub(super) timing: Timing,
}

/// Time of an evaluation, relative to its step.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Timing {
    /// Before the step is resumed.
    BeforeResume,
    InBody,
    /// After an iteration of a loop.
    AfterIteration,
    /// After a failed attempt.
    AfterFailure,
}

/// Returns those of the workflow's result.
pub(super) fn of_result(definition: &WorkflowDefinition) -> Vec<Text<'_>> {
    let mut texts = Texts::new(Timing::InBody);
    texts.mapping(&["result"], definition.result.as_ref());
    texts.found
}

/// Returns those of a step, without the steps inside it.
pub(super) fn of_step(step: &StepDefinition) -> Vec<Text<'_>> {
    let mut texts = Texts::new(Timing::BeforeResume);
    if let Some(rule) = &step.suspend {
        texts.suspend(rule);
    }
    texts.timing = Timing::InBody;
    texts.kind(&step.kind);
    texts.timing = Timing::AfterFailure;
    if let Some(policy) = &step.retry {
        texts.expression(&["retry", "on"], policy.on.as_deref());
        texts.expression(&["retry", "never"], policy.never.as_deref());
    }
    match &step.on_error {
        OnError::Fail | OnError::Ignore => {}
        OnError::Value(value) => texts.mapping(&["on_error", "value"], Some(value)),
    }
    texts.found
}

/// Returns those of a step's compensation.
pub(super) fn of_compensation(step: &StepDefinition) -> Vec<Text<'_>> {
    let Some(compensation) = &step.compensate else { return Vec::new() };
    let mut texts = Texts::new(Timing::AfterFailure);
    texts.expression(&["retry", "on"], compensation.retry.on.as_deref());
    texts.expression(&["retry", "never"], compensation.retry.never.as_deref());
    texts.kind(&compensation.kind);
    for text in &mut texts.found {
        text.keys.insert(0, "compensate".to_owned());
    }
    texts.found
}

struct Texts<'d> {
    found: Vec<Text<'d>>,
    timing: Timing,
}

impl<'d> Texts<'d> {
    fn new(timing: Timing) -> Self {
        Self { found: Vec::new(), timing }
    }

    fn push(&mut self, keys: Vec<String>, source: &'d str, form: Form) {
        self.found.push(Text { keys, source, form, timing: self.timing });
    }

    fn expression(&mut self, keys: &[&str], source: Option<&'d str>) {
        if let Some(source) = source {
            self.push(owned(keys), source, Form::Expression);
        }
    }

    fn template(&mut self, keys: &[&str], source: Option<&'d str>) {
        if let Some(source) = source {
            self.push(owned(keys), source, Form::Template);
        }
    }

    fn mapping(&mut self, keys: &[&str], source: Option<&'d Mapping>) {
        if let Some(Mapping(value)) = source {
            self.value(owned(keys), value);
        }
    }

    fn value(&mut self, keys: Vec<String>, value: &'d Value) {
        let inner = |key: String| keys.iter().cloned().chain([key]).collect();
        match value {
            Value::String(source) => self.push(keys, source, Form::Expression),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.value(inner(index.to_string()), item);
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    self.value(inner(key.clone()), member);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn suspend(&mut self, rule: &'d SuspendRule) {
        let SuspendRule {
            when,
            reason,
            payload,
            deadline_ms: _,
            on_timeout,
            to,
            remind_ms: _,
            escalate,
        } = rule;
        self.expression(&["suspend", "when"], when.as_deref());
        self.template(&["suspend", "reason"], reason.as_deref());
        self.mapping(&["suspend", "payload"], payload.as_ref());
        match on_timeout {
            OnTimeout::Fail => {}
            OnTimeout::Resume(value) => {
                self.mapping(&["suspend", "on_timeout", "resume"], Some(value));
            }
        }
        for (index, assignee) in to.iter().enumerate() {
            self.template(&["suspend", "to", &index.to_string()], Some(assignee));
        }
        for (index, assignee) in escalate.iter().flat_map(|it| &it.to).enumerate() {
            self.template(&["suspend", "escalate", "to", &index.to_string()], Some(assignee));
        }
    }

    fn kind(&mut self, kind: &'d StepKind) {
        if kind.loop_rule().is_some() {
            self.timing = Timing::AfterIteration;
        }
        if let Some(body) = kind.body() {
            self.body(body);
        }
        for (key, text) in kind.texts() {
            let keys: Vec<_> = key.split('.').collect();
            match text {
                KindText::Expression(source) => self.expression(&keys, Some(source)),
                KindText::Template(source) => self.template(&keys, Some(source)),
                KindText::Mapping(source) => self.mapping(&keys, Some(source)),
            }
        }
    }

    fn body(&mut self, body: &'d Body) {
        match body {
            Body::Map(map) => self.mapping(&["map"], Some(map)),
            Body::Run { .. } => {}
            Body::Http(HttpBody { method: _, url, headers, query, body }) => {
                self.template(&["http", "url"], Some(url));
                for (name, value) in headers {
                    self.template(&["http", "headers", name], Some(value));
                }
                for (name, value) in query {
                    self.mapping(&["http", "query", name], Some(value));
                }
                self.mapping(&["http", "body"], body.as_ref());
            }
            Body::Command(CommandBody { argv, input, env, .. }) => {
                for (index, argument) in argv.iter().enumerate().skip(1) {
                    self.template(&["command", "argv", &index.to_string()], Some(argument));
                }
                self.mapping(&["command", "input"], input.as_ref());
                for (name, value) in env {
                    self.template(&["command", "env", name], Some(value));
                }
            }
            Body::Tool { tool: _, args } => self.mapping(&["args"], args.as_ref()),
        }
    }
}

fn owned(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}
