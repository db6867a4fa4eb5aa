//! One step of a workflow; its blocks are filled in later.

use greenroom_actors::domain::definition::{
    Block, Body, Case, Compensation, Mapping, OnError, RetryPolicy, StepDefinition, StepKind,
    StepType, SuspendRule,
};
use greenroom_actors::domain::time::Timestamp;
use serde_json::Value;
use toml::de::DeValue;

use super::blocks::LooseStep;
use super::policy;
use super::{body, compensation, kind};
use crate::config::entry::Entry;
use crate::config::names::{NameKind, Reference};
use crate::config::options::AgentOptions;
use crate::config::section::{Place, Section, misplaced_root_key};
use crate::nearest::nearest;

/// Upper bound of `concurrency`; more items would only wait for each other.
const CONCURRENCY_MAX: i64 = 1000;

/// Upper bound of `max_iterations`, more than an execution may have events by default.
const ITERATIONS_MAX: i64 = 100_000;

/// Reads a step. Refused parts are reported and omitted; a step without an id is omitted whole.
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
    let work = kind.and_then(|kind| work(kind, &section, references));
    let policies = Policies::read(&section, kind, references);
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
    let Policies { suspend, suspend_schema, resume_schema, retry, timeout_ms, compensate } =
        policies;
    // a placeholder lets the rest of the workflow be checked
    let nothing = || StepKind::Then { body: Body::Map(Mapping(Value::Null)) };
    let (kind, blocks) = work.map_or_else(|| (nothing(), None), |(kind, it)| (kind, Some(it)));
    let step = StepDefinition {
        name: name.unwrap_or_else(|| id.clone()),
        id,
        purpose,
        kind,
        suspend,
        input_schema,
        output_schema,
        suspend_schema,
        resume_schema,
        retry,
        timeout_ms,
        on_error: on_error.unwrap_or(OnError::Fail),
        compensate: compensate.map(Box::new),
    };
    Some(LooseStep { step, blocks, place, table })
}

fn kind_of(section: &Section<'_>) -> Option<StepType> {
    let Some(entry) = section.get("type") else { return Some(StepType::Then) };
    let written = entry.text()?;
    if let Some(known) = StepType::named(&written) {
        return Some(known);
    }
    let (message, meant) = kind::unknown(&written);
    entry.place.findings.report(entry.place.spot().error(message).meant(meant));
    None
}

/// The work of a step, with the places of the names of its blocks.
type Work<'a> = (StepKind, Vec<Place<'a>>);

/// A block that has a name but no steps yet, with the place of the name.
type NamedBlock<'a> = (Block, Place<'a>);

fn work<'a>(
    kind: StepType,
    section: &Section<'a>,
    references: &mut Vec<Reference>,
) -> Option<Work<'a>> {
    let leaf = match kind {
        StepType::When => return when(section),
        StepType::All => return parallel(section, |blocks| StepKind::All { blocks }),
        StepType::Race => return parallel(section, |blocks| StepKind::Race { blocks }),
        StepType::ForEach => return for_each(section),
        StepType::Branch => return branch(section),
        StepType::DoWhile => {
            return repeated(section, |when, block, max_iterations| StepKind::DoWhile {
                when,
                block,
                max_iterations,
            });
        }
        StepType::DoUntil => {
            return repeated(section, |when, block, max_iterations| StepKind::DoUntil {
                when,
                block,
                max_iterations,
            });
        }
        StepType::Then => StepKind::Then { body: body::read(section, references)? },
        StepType::Tap => StepKind::Tap { body: body::read(section, references)? },
        StepType::Agent => agent(section, references)?,
        StepType::Workflow => workflow(section, references)?,
        StepType::Sleep => {
            StepKind::Sleep { duration_ms: section.required("duration")?.milliseconds()? }
        }
        StepType::SleepUntil => StepKind::SleepUntil { until: until(&section.required("until")?)? },
        StepType::Map => StepKind::Map { map: section.required("map")?.mapping()? },
    };
    Some((leaf, Vec::new()))
}

/// Reads an expression. A literal time is refused with the expression to write instead.
fn until(entry: &Entry<'_>) -> Option<String> {
    let written = match entry.value {
        DeValue::Datetime(time) => Some(time.to_string()),
        DeValue::String(text) => Some(text.to_string()),
        _ => None,
    };
    match written.filter(|text| Timestamp::from_iso(text).is_some()) {
        Some(time) => entry.refuse(format!("must be an expression, e.g. \"'{time}'\"")),
        None => entry.expression(),
    }
}

fn when<'a>(section: &Section<'a>) -> Option<Work<'a>> {
    let when = section.required("when").and_then(|entry| entry.expression());
    let (block, place) = named_block(section)?;
    Some((StepKind::When { when: when?, block }, vec![place]))
}

fn for_each<'a>(section: &Section<'a>) -> Option<Work<'a>> {
    let items = section.required("items").and_then(|entry| entry.mapping());
    let concurrency = section.integer("concurrency", 1..=CONCURRENCY_MAX, 1);
    let (block, place) = named_block(section)?;
    Some((StepKind::ForEach { items: items?, block, concurrency }, vec![place]))
}

fn branch<'a>(section: &Section<'a>) -> Option<Work<'a>> {
    let cases = section.required("cases").and_then(|entry| {
        let cases = entry.items()?;
        if cases.is_empty() {
            return entry.refuse("needs at least one case");
        }
        let cases: Vec<_> = cases.iter().map(|case| read_case(case.section()?)).collect();
        cases.into_iter().collect::<Option<Vec<_>>>()
    });
    let default = section.get("default").map(|entry| name_of(&entry));
    let (cases, mut places): (Vec<_>, Vec<_>) = cases?.into_iter().unzip();
    let default = match default {
        Some(named) => {
            let (block, place) = named?;
            places.push(place);
            Some(block)
        }
        None => None,
    };
    Some((StepKind::Branch { cases, default }, places))
}

fn read_case<'a>(section: Section<'a>) -> Option<(Case, Place<'a>)> {
    let when = section.required("when").and_then(|entry| entry.expression());
    let block = named_block(&section);
    section.close();
    let (block, place) = block?;
    Some((Case { when: when?, block }, place))
}

fn repeated<'a>(
    section: &Section<'a>,
    kind: fn(String, Block, u32) -> StepKind,
) -> Option<Work<'a>> {
    let when = section.required("when").and_then(|entry| entry.expression());
    let bound = section.get("max_iterations");
    if bound.is_none() {
        section.place.refuse("key `max_iterations` is missing: a loop needs a bound");
    }
    let bound = bound.and_then(|entry| entry.integer(1..=ITERATIONS_MAX));
    let (block, place) = named_block(section)?;
    Some((kind(when?, block, u32::try_from(bound?).ok()?), vec![place]))
}

/// Reads the name of the block that a step runs.
fn named_block<'a>(section: &Section<'a>) -> Option<NamedBlock<'a>> {
    section.required("block").and_then(|entry| name_of(&entry))
}

fn name_of<'a>(entry: &Entry<'a>) -> Option<NamedBlock<'a>> {
    Some((Block { name: entry.filled_text()?, steps: Vec::new() }, entry.place.clone()))
}

/// Reads the names of the blocks that a step runs at once.
fn parallel<'a>(section: &Section<'a>, kind: fn(Vec<Block>) -> StepKind) -> Option<Work<'a>> {
    let entry = section.required("blocks")?;
    let items = entry.items()?;
    if items.is_empty() {
        return entry.refuse("must name at least one block");
    }
    let (blocks, places): (Vec<_>, Vec<_>) = items.iter().filter_map(name_of).unzip();
    Some((kind(blocks), places))
}

fn agent(section: &Section<'_>, references: &mut Vec<Reference>) -> Option<StepKind> {
    let agent = section.required("agent");
    let agent = agent.and_then(|entry| entry.reference(NameKind::Agent, references));
    let prompt = section.text("prompt");
    let schema = section.get("schema").and_then(|entry| entry.schema());
    let options = section.section("options").map(AgentOptions::read);
    let options = options.and_then(AgentOptions::into_wire);
    Some(StepKind::Agent { agent: agent?, prompt, schema, options })
}

pub(super) fn workflow(section: &Section<'_>, references: &mut Vec<Reference>) -> Option<StepKind> {
    let workflow = section.required("workflow");
    let workflow = workflow.and_then(|entry| entry.reference(NameKind::Workflow, references));
    let input = section.get("input").and_then(|entry| entry.mapping());
    Some(StepKind::Workflow { workflow: workflow?, input })
}

/// Modifiers of a step, where its kind accepts them.
#[derive(Default)]
struct Policies {
    suspend: Option<SuspendRule>,
    suspend_schema: Option<Value>,
    resume_schema: Option<Value>,
    retry: Option<RetryPolicy>,
    timeout_ms: Option<u64>,
    compensate: Option<Compensation>,
}

impl Policies {
    fn read(
        section: &Section<'_>,
        kind: Option<StepType>,
        references: &mut Vec<Reference>,
    ) -> Self {
        let mut policies = Self::default();
        if kind.is_some_and(StepType::can_suspend) {
            let schema = |key| section.get(key).and_then(|entry| entry.schema());
            policies.suspend = section.section("suspend").map(policy::suspend);
            policies.suspend_schema = schema("suspend_schema");
            policies.resume_schema = schema("resume_schema");
        }
        if kind.is_some_and(StepType::takes_retry) {
            policies.retry = section.get("retry").and_then(|it| policy::table_of_retry(&it));
            policies.timeout_ms = section.get("timeout").and_then(|entry| entry.milliseconds());
        }
        if kind.is_some_and(StepType::can_compensate) {
            let section = section.section("compensate");
            policies.compensate = section.and_then(|it| compensation::read(&it, references));
        }
        policies
    }
}

/// Refuses the remaining keys: those of other kinds, and unknown ones.
fn close(section: &Section<'_>, kind: StepType, keys: &[&'static str]) {
    for key in section.leftovers() {
        let spot = section.key_place(key).spot();
        let meant = kind::meant(key, keys).map(str::to_owned);
        let block = ["block", "blocks", "cases"].into_iter().find(|block| keys.contains(block));
        let problem = if let ("steps", Some(block)) = (key, block) {
            spot.error(kind::steps_inside(block))
        } else if kind::is_key_of_any(key) {
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
