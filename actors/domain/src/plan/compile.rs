//! Compilation of definitions, which collects all problems.

mod asking;
mod call;
mod compensation;

pub use self::call::compile_command;

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use crate::definition::{
    Block, Mapping, OnError, OnTimeout, RetryPolicy, StepDefinition, StepKind, StepType,
    SuspendRule, WorkflowDefinition,
};
use crate::expression::{
    CompiledMapping, Expression, ExpressionError, Template, hyphenated_step_reference,
};
use crate::hash::canonical_hash;
use crate::ids::{is_definition_id, is_step_id};
use crate::plan::{AfterLastAttempt, AgentWork, Branch, Plan, Problem, Retry, Step, Suspend, Work};
use crate::schema::Schema;

/// Maximum nesting of containers.
const NESTING_MAX: usize = 16;

pub(super) fn plan(definition: WorkflowDefinition) -> Result<Plan, Vec<Problem>> {
    let mut compiler = Compiler::default();
    if !is_definition_id(&definition.id) {
        compiler.problem(
            "",
            "the id of a workflow must be letters, digits, `_`, `-` or `.`, and not `executions`",
        );
    }
    let input_schema = compiler.schema("input_schema", definition.input_schema.as_ref());
    compiler.default_suspend_schema =
        compiler.schema("suspend_schema", definition.suspend_schema.as_ref());
    compiler.default_resume_schema =
        compiler.schema("resume_schema", definition.resume_schema.as_ref());
    let result = compiler.mapping("result", definition.result.as_ref());
    let steps = compiler.steps(&definition.steps, 0);
    compiler.check_compensates(&definition);
    let hash = match canonical_hash(&definition) {
        Ok(hash) => Arc::from(hash),
        Err(error) => {
            compiler.problem("", &format!("cannot be written as JSON: {error}"));
            Arc::from("")
        }
    };
    if compiler.problems.is_empty() {
        let compensates = compiler.compensates;
        Ok(Plan { definition, hash, input_schema, result, steps, compensates })
    } else {
        Err(compiler.problems)
    }
}

#[derive(Default)]
struct Compiler {
    problems: Vec<Problem>,
    /// Current place in the tree.
    place: Vec<String>,
    step_ids: HashSet<String>,
    default_suspend_schema: Option<Schema>,
    default_resume_schema: Option<Schema>,
    /// True once a step has a compensation.
    compensates: bool,
}

impl Compiler {
    fn problem(&mut self, key: &str, message: &str) {
        let place = self.place_of(key);
        self.problems.push(Problem { place, message: message.to_owned() });
    }

    fn place_of(&self, key: &str) -> Vec<String> {
        let mut place = self.place.clone();
        place.extend(key.split('.').filter(|part| !part.is_empty()).map(str::to_owned));
        place
    }

    fn expression_problem(&mut self, key: &str, error: &ExpressionError, source: &str) {
        self.problem(key, &error.to_string());
        self.hyphen_hint(key, source);
    }

    /// Reports `steps.my-step`, which is a subtraction in the expression language.
    fn hyphen_hint(&mut self, key: &str, source: &str) {
        if let Some(suggestion) = hyphenated_step_reference(source) {
            self.problem(
                key,
                &format!("a step id with a hyphen is written `{suggestion}` in an expression"),
            );
        }
    }

    fn schema(&mut self, key: &str, source: Option<&Value>) -> Option<Schema> {
        match Schema::compile(source?) {
            Ok(schema) => Some(schema),
            Err(error) => {
                self.problem(key, &error.to_string());
                None
            }
        }
    }

    fn expression(&mut self, key: &str, source: &str) -> Option<Expression> {
        self.compiled(key, source, Expression::compile(source))
    }

    /// Reports the problem of a source, and a hyphen in it either way.
    fn compiled<T>(
        &mut self,
        key: &str,
        source: &str,
        compiled: Result<T, ExpressionError>,
    ) -> Option<T> {
        let compiled = compiled.map_err(|error| self.problem(key, &error.to_string())).ok();
        self.hyphen_hint(key, source);
        compiled
    }

    fn template(&mut self, key: &str, source: Option<&str>) -> Option<Template> {
        let source = source?;
        match Template::compile(source) {
            Ok(template) => Some(template),
            Err(error) => {
                self.expression_problem(key, &error, source);
                None
            }
        }
    }

    fn mapping(&mut self, key: &str, source: Option<&Mapping>) -> Option<CompiledMapping> {
        let source = source?;
        self.hyphen_hints(key, &source.0);
        match CompiledMapping::compile(source) {
            Ok(mapping) => Some(mapping),
            Err(_) => {
                for (inside, error) in CompiledMapping::problems(source) {
                    let mut place = self.place_of(key);
                    place.extend(inside);
                    self.problems.push(Problem { place, message: error.to_string() });
                }
                None
            }
        }
    }

    fn hyphen_hints(&mut self, key: &str, source: &Value) {
        match source {
            Value::String(text) => self.hyphen_hint(key, text),
            Value::Array(items) => items.iter().for_each(|item| self.hyphen_hints(key, item)),
            Value::Object(entries) => entries
                .iter()
                .for_each(|(name, value)| self.hyphen_hints(&format!("{key}.{name}"), value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn steps(&mut self, steps: &[StepDefinition], depth: usize) -> Vec<Step> {
        if steps.is_empty() {
            self.problem("steps", "at least one step is needed");
        }
        steps.iter().filter_map(|step| self.step(step, depth)).collect()
    }

    fn step(&mut self, step: &StepDefinition, depth: usize) -> Option<Step> {
        // Step ids are unique in a workflow, so the id alone identifies a step in any block.
        let outer = std::mem::replace(&mut self.place, vec!["steps".to_owned(), step.id.clone()]);
        let compiled = self.step_here(step, depth);
        self.place = outer;
        compiled
    }

    fn step_here(&mut self, step: &StepDefinition, depth: usize) -> Option<Step> {
        if !is_step_id(&step.id) {
            self.problem("id", "a step id is a letter, then letters, digits, `_` or `-`");
        }
        if !self.step_ids.insert(step.id.clone()) {
            self.problem("id", &format!("step id `{}` is used more than once", step.id));
        }
        self.check_modifiers(step);
        let suspend = step.suspend.as_ref().map(|rule| self.suspend(rule));
        let input_schema = self.schema("input_schema", step.input_schema.as_ref());
        let output_schema = self.schema("output_schema", step.output_schema.as_ref());
        let suspend_schema = self.schema("suspend_schema", step.suspend_schema.as_ref());
        let resume_schema = self.schema("resume_schema", step.resume_schema.as_ref());
        let on_error = match &step.on_error {
            OnError::Fail => Some(AfterLastAttempt::Fail),
            OnError::Ignore => Some(AfterLastAttempt::Ignore),
            OnError::Value(value) => {
                self.mapping("on_error.value", Some(value)).map(AfterLastAttempt::Value)
            }
        };
        let retry = step.retry.as_ref().map(|policy| self.retry(policy));
        let work = self.work(&step.kind, depth);
        let compensate = self.compensation(step);
        Some(Step {
            id: Arc::from(step.id.as_str()),
            work: work?,
            suspend,
            input_schema,
            output_schema,
            suspend_schema: suspend_schema.or_else(|| self.default_suspend_schema.clone()),
            resume_schema: resume_schema.or_else(|| self.default_resume_schema.clone()),
            retry,
            timeout_ms: step.timeout_ms,
            on_error: on_error?,
            is_tap: step.kind.step_type() == StepType::Tap,
            compensate,
        })
    }

    fn retry(&mut self, policy: &RetryPolicy) -> Retry {
        let on = policy.on.as_ref().and_then(|on| self.expression("retry.on", on));
        let never = policy.never.as_ref();
        let never = never.and_then(|never| self.expression("retry.never", never));
        Retry { policy: policy.clone(), on, never }
    }

    fn work(&mut self, kind: &StepKind, depth: usize) -> Option<Work> {
        match kind {
            StepKind::Then { body } | StepKind::Tap { body } => self.body(body),
            StepKind::When { when, block } => {
                let when = self.expression("when", when);
                let branches = self.branches([block], depth);
                Some(Work::When { when: when?, branches })
            }
            StepKind::All { blocks } => Some(Work::All(self.branches(blocks, depth))),
            StepKind::Race { blocks } => Some(Work::Race(self.branches(blocks, depth))),
            StepKind::Agent { agent, prompt, schema, options } => {
                self.schema("schema", schema.as_ref());
                let given = prompt.is_some();
                let prompt = self.template("prompt", prompt.as_deref());
                if given && prompt.is_none() {
                    return None;
                }
                Some(Work::Agent(AgentWork {
                    agent: Arc::from(agent.as_str()),
                    prompt,
                    schema: schema.clone().map(Arc::new),
                    options: options.clone(),
                }))
            }
            StepKind::Workflow { workflow, input } => Some(Work::Workflow {
                workflow: Arc::from(workflow.as_str()),
                input: self.mapping("input", input.as_ref()),
            }),
            StepKind::Sleep { duration_ms } => Some(Work::Sleep { duration_ms: *duration_ms }),
            StepKind::SleepUntil { until } => {
                Some(Work::SleepUntil { until: self.expression("until", until)? })
            }
            StepKind::Map { map } => self.mapping("map", Some(map)).map(Work::Map),
            StepKind::ForEach { items, block, concurrency } => {
                let items = self.mapping("items", Some(items));
                let concurrency = self.at_least_one("concurrency", *concurrency);
                let branches = self.branches([block], depth);
                Some(Work::ForEach { items: items?, concurrency, branches })
            }
            StepKind::Branch { cases, .. } => {
                if cases.is_empty() {
                    self.problem("cases", "at least one case is needed");
                }
                let conditions: Vec<_> = cases
                    .iter()
                    .enumerate()
                    .map(|(index, case)| {
                        self.expression(&format!("cases.{index}.when"), &case.when)
                    })
                    .collect();
                let conditions: Option<Vec<_>> = conditions.into_iter().collect();
                let branches = self.branches(kind.blocks(), depth);
                Some(Work::Choice { cases: conditions?, branches })
            }
            StepKind::DoWhile { when, block, max_iterations } => {
                self.repeated(when, true, block, *max_iterations, depth)
            }
            StepKind::DoUntil { when, block, max_iterations } => {
                self.repeated(when, false, block, *max_iterations, depth)
            }
        }
    }

    fn repeated(
        &mut self,
        when: &str,
        again_if: bool,
        block: &Block,
        max_iterations: u32,
        depth: usize,
    ) -> Option<Work> {
        let when = self.expression("when", when);
        let rounds_max = self.at_least_one("max_iterations", max_iterations);
        let branches = self.branches([block], depth);
        Some(Work::Loop { when: when?, again_if, rounds_max, branches })
    }

    fn at_least_one(&mut self, key: &str, number: u32) -> usize {
        if number == 0 {
            self.problem(key, "must be at least 1");
        }
        usize::try_from(number).unwrap_or(usize::MAX)
    }

    fn branches<'b>(
        &mut self,
        blocks: impl IntoIterator<Item = &'b Block>,
        depth: usize,
    ) -> Vec<Branch> {
        let mut blocks = blocks.into_iter().peekable();
        if blocks.peek().is_none() {
            self.problem("blocks", "at least one block is needed");
        }
        if depth >= NESTING_MAX {
            self.problem("blocks", &format!("containers are nested deeper than {NESTING_MAX}"));
            return Vec::new();
        }
        let mut names = HashSet::new();
        let mut branches = Vec::new();
        for block in blocks {
            if !is_step_id(&block.name) {
                self.problem("blocks", &format!("`{}` is not a valid name of a block", block.name));
            }
            if !names.insert(block.name.as_str()) {
                self.problem("blocks", &format!("block `{}` is defined twice", block.name));
            }
            let steps = self.steps(&block.steps, depth + 1);
            branches.push(Branch { name: Arc::from(block.name.as_str()), steps });
        }
        branches
    }

    fn suspend(&mut self, rule: &SuspendRule) -> Suspend {
        let when = rule.when.as_deref().and_then(|when| self.expression("suspend.when", when));
        let on_timeout = match &rule.on_timeout {
            OnTimeout::Fail => None,
            OnTimeout::Resume(value) => {
                if rule.deadline_ms.is_none() {
                    self.problem("suspend.on_timeout", "requires a `deadline`");
                }
                self.mapping("suspend.on_timeout.resume", Some(value))
            }
        };
        Suspend {
            when,
            reason: self.template("suspend.reason", rule.reason.as_deref()),
            payload: self.mapping("suspend.payload", rule.payload.as_ref()),
            deadline_ms: rule.deadline_ms,
            on_timeout,
            asking: self.asking(rule),
        }
    }

    /// Rejects the modifiers that the kind does not take.
    fn check_modifiers(&mut self, step: &StepDefinition) {
        let (kind, name) = (step.kind.step_type(), step.kind.name());
        if !kind.takes_retry() && step.retry.is_some() {
            self.problem("retry", &format!("{name} does not take `retry`"));
        }
        if !kind.takes_retry() && step.timeout_ms.is_some() {
            self.problem("timeout", &format!("{name} does not take `timeout`"));
        }
        if !kind.can_suspend() && step.suspend.is_some() {
            self.problem("suspend", &format!("{name} cannot suspend"));
        }
        if let Some(policy) = &step.retry {
            self.check_retry(policy);
        }
    }

    fn check_retry(&mut self, RetryPolicy { attempts, factor, .. }: &RetryPolicy) {
        if *attempts == 0 {
            self.problem("retry.attempts", "must be at least 1");
        }
        if !factor.is_finite() || *factor < 1.0 {
            self.problem("retry.factor", "must be at least 1");
        }
    }
}
