//! From flat blocks to a tree: a container names its blocks, each block is named once.

use std::collections::BTreeMap;

use greenroom_actors::domain::definition::{Block, StepDefinition};
use toml::de::DeTable;

use crate::config::section::Place;
use crate::nearest::nearest;

/// Deepest nesting of blocks, as in a plan. Building the tree is recursive, so the depth has to be
/// checked before a plan could check it.
const DEPTH_MAX: usize = 16;

/// A step whose blocks have names, but no steps yet.
pub(super) struct LooseStep<'a> {
    pub(super) step: StepDefinition,
    /// Places of the names of its blocks, in the order of the kind; `None` for a refused step.
    pub(super) blocks: Option<Vec<Place<'a>>>,
    pub(super) place: Place<'a>,
    pub(super) table: &'a DeTable<'a>,
}

/// A block that is not in a container yet.
pub(super) struct LooseBlock<'a> {
    pub(super) steps: Vec<LooseStep<'a>>,
    pub(super) place: Place<'a>,
}

/// The blocks of a workflow while they are moved into their containers.
pub(super) struct Nesting<'a> {
    loose: BTreeMap<String, LooseBlock<'a>>,
    /// Names of blocks that are in their container, with the line that names them.
    taken: BTreeMap<String, usize>,
    /// Names of the blocks around the one being filled.
    around: Vec<String>,
    /// True if a step was refused, which may have named any block.
    has_broken_step: bool,
}

impl<'a> Nesting<'a> {
    pub(super) fn new(loose: BTreeMap<String, LooseBlock<'a>>) -> Self {
        Self { loose, taken: BTreeMap::new(), around: Vec::new(), has_broken_step: false }
    }

    /// Fills in the blocks of the steps.
    pub(super) fn nest(&mut self, steps: Vec<LooseStep<'a>>) -> Vec<StepDefinition> {
        let nested = |LooseStep { mut step, blocks, .. }: LooseStep<'a>| {
            self.has_broken_step |= blocks.is_none();
            let places = blocks.unwrap_or_default();
            for (block, place) in step.kind.blocks_mut().into_iter().zip(&places) {
                self.fill(block, place);
            }
            step
        };
        steps.into_iter().map(nested).collect()
    }

    fn fill(&mut self, block: &mut Block, place: &Place<'a>) {
        let name = &block.name;
        if self.around.len() == DEPTH_MAX {
            place.refuse(format!("blocks are nested deeper than {DEPTH_MAX} levels"));
            self.has_broken_step = true;
            return;
        }
        let Some(loose) = self.loose.remove(name) else { return self.refuse(name, place) };
        self.taken.insert(name.clone(), place.spot().line);
        self.around.push(name.clone());
        block.steps = self.nest(loose.steps);
        self.around.pop();
    }

    fn refuse(&self, name: &String, place: &Place<'a>) {
        match self.taken.get(name) {
            Some(_) if self.around.contains(name) => {
                place.refuse(format!("block {name} contains itself"));
            }
            Some(line) => {
                place.refuse(format!("block {name} is already used by the step at line {line}"));
            }
            None => {
                let known = self.loose.keys().chain(self.taken.keys()).map(String::as_str);
                let problem = place.spot().error(format!("there is no block {name}"));
                place.findings.report(problem.meant(nearest(name, known)));
            }
        }
    }

    /// Refuses the blocks that no step names. Returns true if every block is in a container.
    pub(super) fn close(self) -> bool {
        if self.has_broken_step {
            return false;
        }
        let is_whole = self.loose.is_empty();
        for block in self.loose.into_values() {
            block.place.refuse("no step uses this block");
        }
        is_whole
    }
}
