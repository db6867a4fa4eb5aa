//! Mapping from problems of compiled workflows back to lines of the file.

use std::collections::HashMap;

use greenroom_actors::domain::plan::{Finding, Problem};
use toml::de::{DeTable, DeValue};

use super::findings;
use crate::config::problem::{ConfigProblem, Spot};
use crate::config::section::Place;

/// Places of the steps and blocks of a workflow.
pub(super) struct Places<'a> {
    workflow: (Place<'a>, &'a DeTable<'a>),
    /// By id. Two steps with one id are a mistake that must have a place, too.
    steps: HashMap<String, Vec<(Place<'a>, &'a DeTable<'a>)>>,
    blocks: HashMap<String, Place<'a>>,
}

impl<'a> Places<'a> {
    pub(super) fn new(place: Place<'a>, table: &'a DeTable<'a>) -> Self {
        Self { workflow: (place, table), steps: HashMap::new(), blocks: HashMap::new() }
    }

    pub(super) fn add_step(&mut self, id: &str, place: Place<'a>, table: &'a DeTable<'a>) {
        self.steps.entry(id.to_owned()).or_default().push((place, table));
    }

    pub(super) fn add_block(&mut self, name: &str, place: Place<'a>) {
        self.blocks.insert(name.to_owned(), place);
    }

    pub(super) fn steps(&self) -> impl Iterator<Item = &(Place<'a>, &'a DeTable<'a>)> {
        self.steps.values().flatten()
    }

    pub(super) fn workflow(&self) -> &(Place<'a>, &'a DeTable<'a>) {
        &self.workflow
    }

    pub(super) fn is_step(&self, id: &str) -> bool {
        self.steps.contains_key(id)
    }

    pub(super) fn located(&self, problem: Problem) -> ConfigProblem {
        let Problem { place, message } = problem;
        self.spot(&place).error(message)
    }

    pub(super) fn found(&self, finding: Finding) -> ConfigProblem {
        let spot = self.spot(&finding.place);
        findings::problem(finding, &spot)
    }

    /// Returns the place of the deepest of the keys that exists.
    pub(super) fn spot(&self, keys: &[String]) -> Spot {
        self.resolve(keys).unwrap_or_else(|| self.workflow.0.clone()).spot()
    }

    /// Returns the step of a problem. Of two with one id it is the second if the id is wrong, else
    /// the first that has the key.
    fn step(&self, id: &str, keys: &[String]) -> Option<&(Place<'a>, &'a DeTable<'a>)> {
        let steps = self.steps.get(id)?;
        match keys {
            [key] if key == "id" => steps.last(),
            [key, ..] => steps
                .iter()
                .find(|(_, table)| member(table, key).is_some())
                .or_else(|| steps.first()),
            [] => steps.first(),
        }
    }

    /// Follows the keys from the workflow down. A step may be named alone, or with the containers
    /// and blocks around it.
    fn resolve(&self, keys: &[String]) -> Option<Place<'a>> {
        let (mut place, mut table) = (self.workflow.0.clone(), self.workflow.1);
        let mut rest = keys;
        loop {
            rest = match rest {
                [word, id, inner @ ..] if word == "steps" && self.steps.contains_key(id) => {
                    (place, table) = self.step(id, inner)?.clone();
                    inner
                }
                [word, name, inner @ ..]
                    if (word == "blocks" || word == "block") && self.blocks.contains_key(name) =>
                {
                    place = self.blocks[name].clone();
                    match inner {
                        [] => return Some(place),
                        [word, ..] if word == "steps" => inner,
                        [id, inner @ ..] if self.steps.contains_key(id) => {
                            (place, table) = self.step(id, inner)?.clone();
                            inner
                        }
                        _ => return Some(place),
                    }
                }
                _ => return Some(deepest(place, table, rest)),
            };
        }
    }
}

/// Returns the place of the deepest of the keys that exists. Definitions name some keys otherwise
/// than the file (`timeout_ms`, `timeout`).
pub(crate) fn deepest<'a>(
    mut place: Place<'a>,
    table: &'a DeTable<'a>,
    keys: &[String],
) -> Place<'a> {
    let mut inside: Option<&'a DeValue<'a>> = None;
    for key in keys {
        let next = match inside {
            None => member(table, key),
            Some(DeValue::Table(table)) => member(table, key),
            Some(DeValue::Array(items)) => {
                let index = key.trim_matches(['[', ']']);
                index.parse::<usize>().ok().and_then(|at| Some((index, items.get(at)?)))
            }
            Some(_) => None,
        };
        let Some((key, value)) = next else { break };
        place = match inside {
            Some(DeValue::Array(_)) => place.item(key.parse().unwrap_or_default(), value.span()),
            _ => place.inner(key, value.span()),
        };
        inside = Some(value.get_ref());
    }
    place
}

fn member<'a, 'k>(
    table: &'a DeTable<'a>,
    key: &'k str,
) -> Option<(&'k str, &'a toml::Spanned<DeValue<'a>>)> {
    let short = key.strip_suffix("_ms").unwrap_or(key);
    [key, short].into_iter().find_map(|key| Some((key, table.get(key)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::document;
    use crate::config::source::{Findings, Source};
    use crate::config::workflows::{read_blocks, read_steps};

    const TEXT: &str = "\
[workflows.w]
result = { x = 'steps.a' }
[[workflows.w.steps]]
id = 'a'
type = 'andAll'
blocks = ['b']
[[workflows.w.blocks.b]]
id = 'steps'
map = { x = ['1', '2'] }
timeout = '1s'
[[workflows.w.blocks.b]]
id = 'c'
map = 1
suspend = { when = 'data', deadline = '1h' }
";

    #[test]
    fn a_problem_of_the_plan_has_a_line() {
        let (source, findings) = (Source::new("c.toml", TEXT), Findings::default());
        let table = document::parse(&source, &findings).unwrap();
        let root = document::root(&source, &table, &findings);
        let section = root.named_sections("workflows").remove(0).1;
        let mut places = Places::new(section.place.clone(), section.table);
        read_steps(&section, &mut places, &mut Vec::new());
        read_blocks(&section, &mut places, &mut Vec::new());
        for (keys, expected) in [
            ("", "1:1: workflows.w"),
            ("result.x", "2:16: workflows.w.result.x"),
            ("steps.a", "3:1: workflows.w.steps.a"),
            ("steps.steps.map.x.1", "9:19: workflows.w.blocks.b.steps.map.x[1]"),
            ("steps.steps.timeout_ms", "10:11: workflows.w.blocks.b.steps.timeout"),
            ("steps.a.blocks.b.steps.c.suspend.when", "14:20: workflows.w.blocks.b.c.suspend.when"),
            ("blocks.b.c.suspend.deadline_ms", "14:39: workflows.w.blocks.b.c.suspend.deadline"),
            ("steps.a.blocks.b", "7:1: workflows.w.blocks.b"),
            ("steps.c.kind.else", "11:1: workflows.w.blocks.b.c"),
            ("steps.nowhere", "3:1: workflows.w.steps"),
        ] {
            let place = keys.split('.').filter(|key| !key.is_empty()).map(str::to_owned).collect();
            let located = places.located(Problem { place, message: "bad".to_owned() });
            assert_eq!(located.to_string(), format!("c.toml:{expected}: bad"), "for {keys}");
        }
    }
}
