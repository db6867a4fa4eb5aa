//! One step of a workflow, its blocks still apart.

use greenroom_actors::domain::definition::{
    Body, OnError, Projection, RetryPolicy, StepDefinition, StepKind, StepType, SuspendRule,
};
use greenroom_actors::domain::time::Timestamp;
use serde_json::Value;
use toml::de::DeValue;

use super::blocks::{BlockName, Contents, LooseStep, Repeated};
use super::policy;
use super::{body, kind};
use crate::config::entry::Entry;
use crate::config::names::{NameKind, Reference};
use crate::config::options::AgentOptions;
use crate::config::section::{Section, misplaced_root_key};
use crate::nearest::nearest;

/// Largest `concurrency`: more items at once would only wait for each other.
const CONCURRENCY_MAX: i64 = 1000;

/// Largest `max_iterations`: more rounds than an execution may have events by default.
const ITERATIONS_MAX: i64 = 100_000;

/// Reads a step. What is wrong with it is reported and left out; without an id there is no step.
pub(super) fn read<'a>(
    mut section: Section<'a>,
    references: &mut Vec<Reference>,
) -> Option<LooseStep<'a>> {
    let id = section.required_text("id");
    if let Some(id) = &id {
        section.rename(id);
    }
    let kind = kind_of(&section);
    let keys = kind.map(StepType::keys).unwrap_or_default();
    let contents = match kind {
        Some(kind) => contents(kind, &section, references),
        None => Contents::Broken,
    };
    let policies = Policies::read(&section, kind);
    let name = section.text("name");
    let purpose = section.text("purpose").unwrap_or_default();
    let schema = |key| section.get(key).and_then(|entry| entry.schema());
    let (input_schema, output_schema) = (schema("input_schema"), schema("output_schema"));
    let on_error = section.get("on_error").and_then(|entry| policy::on_error(&entry));
    let place = section.place.clone();
    let table = section.table;
    if let Some(kind) = kind {
        close(&section, kind, &keys);
    }
    let id = id?;
    let Policies { suspend, suspend_schema, resume_schema, retry, timeout_ms } = policies;
    let step = StepDefinition {
        name: name.unwrap_or_else(|| id.clone()),
        id,
        purpose,
        kind: placeholder(),
        suspend,
        input_schema,
        output_schema,
        suspend_schema,
        resume_schema,
        retry,
        timeout_ms,
        on_error: on_error.unwrap_or(OnError::Fail),
    };
    Some(LooseStep { step, contents, place, table })
}

/// Stands in for the work of a broken step, so that the rest of the workflow can be checked.
pub(super) fn placeholder() -> StepKind {
    StepKind::Then { body: Body::Map(Projection(Value::Null)) }
}

fn kind_of(section: &Section<'_>) -> Option<StepType> {
    let Some(entry) = section.get("type") else { return Some(StepType::Then) };
    let written = entry.text()?;
    if let Some(known) = StepType::named(&written) {
        return Some(known);
    }
    let problem = entry.place.spot().error(format!("unknown type {written:?}"));
    entry.place.findings.report(problem.meant(nearest(&written, kind::names())));
    None
}

fn contents<'a>(
    kind: StepType,
    section: &Section<'a>,
    references: &mut Vec<Reference>,
) -> Contents<'a> {
    let found = match kind {
        StepType::Then => {
            body::read(section, references).map(|body| Contents::Leaf(StepKind::Then { body }))
        }
        StepType::Tap => {
            body::read(section, references).map(|body| Contents::Leaf(StepKind::Tap { body }))
        }
        StepType::When => when(section),
        StepType::All => block_names(section).map(Contents::All),
        StepType::Race => block_names(section).map(Contents::Race),
        StepType::Agent => agent(section, references).map(Contents::Leaf),
        StepType::Workflow => workflow(section, references).map(Contents::Leaf),
        StepType::Sleep => section
            .required("duration")
            .and_then(|entry| entry.milliseconds())
            .map(|duration_ms| Contents::Leaf(StepKind::Sleep { duration_ms })),
        StepType::SleepUntil => section
            .required("until")
            .and_then(|entry| until(&entry))
            .map(|until| Contents::Leaf(StepKind::SleepUntil { until })),
        StepType::Map => section
            .required("map")
            .and_then(|entry| entry.projection())
            .map(|map| Contents::Leaf(StepKind::Map { map })),
        StepType::ForEach => for_each(section),
        StepType::Branch => branch(section),
        StepType::DoWhile => repeated(section).map(Contents::DoWhile),
        StepType::DoUntil => repeated(section).map(Contents::DoUntil),
    };
    found.unwrap_or(Contents::Broken)
}

/// An expression; who writes a time as it is gets told how.
fn until(entry: &Entry<'_>) -> Option<String> {
    let written = match entry.value {
        DeValue::Datetime(time) => Some(time.to_string()),
        DeValue::String(text) => Some(text.to_string()),
        _ => None,
    };
    match written.filter(|text| Timestamp::from_iso(text).is_some()) {
        Some(time) => {
            entry.place.refuse(format!("a time in an expression is a text: \"'{time}'\""));
            None
        }
        None => entry.expression(),
    }
}

fn when<'a>(section: &Section<'a>) -> Option<Contents<'a>> {
    let when = section.required("when").and_then(|entry| entry.expression());
    let block = block_name(section);
    Some(Contents::When { when: when?, block: block? })
}

fn for_each<'a>(section: &Section<'a>) -> Option<Contents<'a>> {
    let items = section.required("items").and_then(|entry| entry.projection());
    let concurrency = section.integer("concurrency", 1..=CONCURRENCY_MAX, 1);
    let block = block_name(section);
    Some(Contents::ForEach { items: items?, block: block?, concurrency })
}

fn branch<'a>(section: &Section<'a>) -> Option<Contents<'a>> {
    let entry = section.required("cases");
    let cases = entry.and_then(|entry| {
        let cases = entry.items()?;
        if cases.is_empty() {
            entry.place.refuse("has no case");
        }
        let cases: Option<Vec<_>> = cases.iter().map(|case| read_case(case.section()?)).collect();
        cases.filter(|cases| !cases.is_empty())
    });
    let default = section.get("default");
    let named = default.as_ref().map(|entry| name_of(entry));
    match named {
        Some(None) => None,
        Some(default @ Some(_)) => Some(Contents::Branch { cases: cases?, default }),
        None => Some(Contents::Branch { cases: cases?, default: None }),
    }
}

fn read_case<'a>(section: Section<'a>) -> Option<(String, BlockName<'a>)> {
    let when = section.required("when").and_then(|entry| entry.expression());
    let block = block_name(&section);
    section.close();
    Some((when?, block?))
}

fn repeated<'a>(section: &Section<'a>) -> Option<Repeated<'a>> {
    let when = section.required("when").and_then(|entry| entry.expression());
    let bound = section.get("max_iterations");
    if bound.is_none() {
        section.place.refuse("key `max_iterations` is missing: a loop needs a bound");
    }
    let bound = bound.and_then(|entry| entry.integer(1..=ITERATIONS_MAX));
    let block = block_name(section);
    let max_iterations = u32::try_from(bound?).ok()?;
    Some(Repeated { when: when?, block: block?, max_iterations })
}

/// The block that the step runs.
fn block_name<'a>(section: &Section<'a>) -> Option<BlockName<'a>> {
    section.required("block").and_then(|entry| name_of(&entry))
}

fn name_of<'a>(entry: &Entry<'a>) -> Option<BlockName<'a>> {
    Some(BlockName { name: entry.filled_text()?, place: entry.place.clone() })
}

fn block_names<'a>(section: &Section<'a>) -> Option<Vec<BlockName<'a>>> {
    let entry = section.required("blocks")?;
    let items = entry.items()?;
    if items.is_empty() {
        entry.place.refuse("names no block");
        return None;
    }
    Some(items.iter().filter_map(name_of).collect())
}

fn agent(section: &Section<'_>, references: &mut Vec<Reference>) -> Option<StepKind> {
    let agent = section.required("agent").and_then(|entry| {
        let agent = entry.filled_text()?;
        references.push(Reference::new(NameKind::Agent, &agent, entry.place.spot()));
        Some(agent)
    });
    let prompt = section.text("prompt");
    let schema = section.get("schema").and_then(|entry| entry.schema());
    let options = section.section("options").map(AgentOptions::read);
    let options = options.and_then(AgentOptions::into_wire);
    Some(StepKind::Agent { agent: agent?, prompt, schema, options })
}

fn workflow(section: &Section<'_>, references: &mut Vec<Reference>) -> Option<StepKind> {
    let workflow = section.required("workflow").and_then(|entry| {
        let workflow = entry.filled_text()?;
        references.push(Reference::new(NameKind::Workflow, &workflow, entry.place.spot()));
        Some(workflow)
    });
    let input = section.get("input").and_then(|entry| entry.projection());
    Some(StepKind::Workflow { workflow: workflow?, input })
}

/// Holds the modifiers around the work of a step, where its kind takes them.
#[derive(Default)]
struct Policies {
    suspend: Option<SuspendRule>,
    suspend_schema: Option<Value>,
    resume_schema: Option<Value>,
    retry: Option<RetryPolicy>,
    timeout_ms: Option<u64>,
}

impl Policies {
    fn read(section: &Section<'_>, kind: Option<StepType>) -> Self {
        let mut policies = Self::default();
        if kind.is_some_and(StepType::can_suspend) {
            let schema = |key| section.get(key).and_then(|entry| entry.schema());
            policies.suspend = section.section("suspend").map(policy::suspend);
            policies.suspend_schema = schema("suspend_schema");
            policies.resume_schema = schema("resume_schema");
        }
        if kind.is_some_and(StepType::takes_retry) {
            policies.retry = section.section("retry").map(policy::retry);
            policies.timeout_ms = section.get("timeout").and_then(|entry| entry.milliseconds());
        }
        policies
    }
}

/// Refuses the keys that have not been read: those of other kinds, and those of none.
fn close(section: &Section<'_>, kind: StepType, keys: &[&'static str]) {
    for key in section.leftovers() {
        let spot = section.key_place(key).spot();
        let meant = kind::meant(key, keys).map(str::to_owned);
        let problem = if kind::is_key_of_any(key) {
            spot.error(kind::misfit(key, kind)).meant(meant)
        } else if let Some(problem) = misplaced_root_key(key, &spot) {
            problem
        } else {
            let known = kind::COMMON.iter().chain(keys).copied();
            spot.error("unknown key").meant(meant.or_else(|| nearest(key, known)))
        };
        section.place.findings.report(problem);
    }
}
