//! `[workflows.*]`: definitions of workflows, from flat tables to one checked tree each.

mod arguments;
mod blocks;
mod body;
mod compensation;
mod findings;
mod follow_ups;
mod hyphen;
pub(crate) mod kind;
mod named;
mod places;
mod policy;
mod recursion;
mod step;

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_actors::domain::definition::WorkflowDefinition;
use greenroom_actors::domain::plan::{Callers, Plan, Problem, lints as findings_of};

pub(crate) use self::arguments::StepArguments;
use self::blocks::{LooseBlock, LooseStep, Nesting};
pub(super) use self::findings::spot as spot_in;
pub(crate) use self::findings::{suggestion, warnings};
pub(crate) use self::named::named;
use self::places::Places;
pub(crate) use self::places::deepest;
pub(crate) use self::recursion::{children_of, warn_of_recursion};
use super::entry::Entry;
use super::names::Reference;
use super::programs::programs_at;
use super::section::Section;
use super::steps::{Needs, secrets_at};

/// Findings of all workflows, for checks once everything is read.
pub(crate) struct Read<'c> {
    pub(crate) references: &'c mut Vec<Reference>,
    pub(crate) arguments: &'c mut Vec<StepArguments>,
    pub(crate) needs: &'c mut Needs,
}

/// Reads and compiles a workflow. Returns a plan only if it can run; suspicious parts are reported
/// too. Arguments of calls are checked when everything is read, programs and secrets before the
/// start.
pub(crate) fn read(
    id: &str,
    section: Section<'_>,
    callers: Callers,
    read: Read<'_>,
) -> Option<Arc<Plan>> {
    let Read { references, arguments, needs } = read;
    let mut places = Places::new(section.place.clone(), section.table);
    let steps = read_steps(&section, &mut places, references);
    let blocks = read_blocks(&section, &mut places, references);
    let mut nesting = Nesting::new(blocks);
    let steps = nesting.nest(steps);
    let is_whole = nesting.close();
    let schema = |key| section.get(key).and_then(|entry| entry.schema());
    let definition = WorkflowDefinition {
        id: id.to_owned(),
        name: section.text("name").unwrap_or_else(|| id.to_owned()),
        purpose: section.text("purpose").unwrap_or_default(),
        input_schema: schema("input_schema"),
        suspend_schema: schema("suspend_schema"),
        resume_schema: schema("resume_schema"),
        result: section.get("result").and_then(|entry| entry.mapping()),
        compensate_on_cancel: section.flag("compensate_on_cancel", false),
        steps,
    };
    let findings = section.place.findings;
    section.close();
    hyphen::check(&places);
    // the scope of steps in an incomplete tree is unknown
    let lints = if is_whole { findings_of(&definition, callers) } else { Vec::new() };
    arguments.extend(StepArguments::of(&definition, &places));
    let compiled = Plan::compile(definition);
    let (plan, problems) = match compiled {
        Ok(plan) => (Some(Arc::new(plan)), Vec::new()),
        Err(problems) => (None, problems),
    };
    let is_own = |problem: &Problem| !follow_ups::is_follow_up(problem, &places, findings);
    for problem in problems.into_iter().filter(is_own) {
        findings.report_unless_known(places.located(problem));
    }
    let lints = lints.into_iter().map(|finding| places.found(finding));
    let lints: Vec<_> = lints.filter(|problem| !findings.know(problem)).collect();
    lints.into_iter().for_each(|problem| findings.report(problem));
    if let Some(plan) = &plan {
        needs.secrets.extend(secrets_at(plan, |keys| places.spot(keys)));
        needs.programs.extend(programs_at(plan, |keys| places.spot(keys)));
    }
    plan
}

fn read_steps<'a>(
    section: &Section<'a>,
    places: &mut Places<'a>,
    references: &mut Vec<Reference>,
) -> Vec<LooseStep<'a>> {
    let entry = section.required("steps");
    entry.map(|entry| steps_of(&entry, places, references)).unwrap_or_default()
}

fn read_blocks<'a>(
    section: &Section<'a>,
    places: &mut Places<'a>,
    references: &mut Vec<Reference>,
) -> BTreeMap<String, LooseBlock<'a>> {
    let mut blocks = BTreeMap::new();
    for (name, mut entry) in section.named_entries("blocks") {
        // steps have the same keys inside blocks
        entry.place.pattern = format!("{}.steps", section.place.pattern);
        places.add_block(&name, entry.place.clone());
        let steps = steps_of(&entry, places, references);
        blocks.insert(name, LooseBlock { steps, place: entry.place });
    }
    blocks
}

fn steps_of<'a>(
    entry: &Entry<'a>,
    places: &mut Places<'a>,
    references: &mut Vec<Reference>,
) -> Vec<LooseStep<'a>> {
    let Some(items) = entry.tables() else { return Vec::new() };
    if items.is_empty() {
        entry.place.refuse("needs at least one step");
    }
    let tables = items.iter().filter_map(Entry::section);
    let steps: Vec<_> = tables.filter_map(|table| step::read(table, references)).collect();
    for step in &steps {
        places.add_step(&step.step.id, step.place.clone(), step.table);
    }
    steps
}
