//! From flat blocks to a tree: a container names its blocks, each block is named once.

use std::collections::BTreeMap;

use greenroom_actors::domain::definition::{Block, Case, Projection, StepDefinition, StepKind};
use toml::de::DeTable;

use super::step::placeholder;
use crate::config::section::Place;
use crate::nearest::nearest;

/// Deepest nesting of blocks, as in a plan: building the tree is recursive, so it cannot be left
/// to the plan to find that out.
const DEPTH_MAX: usize = 16;

/// A step whose blocks are still names.
pub(super) struct LooseStep<'a> {
    /// The step, with a placeholder for its kind.
    pub(super) step: StepDefinition,
    pub(super) contents: Contents<'a>,
    pub(super) place: Place<'a>,
    pub(super) table: &'a DeTable<'a>,
}

/// What a step does, with names for blocks.
pub(super) enum Contents<'a> {
    Leaf(StepKind),
    When {
        when: String,
        block: BlockName<'a>,
    },
    All(Vec<BlockName<'a>>),
    Race(Vec<BlockName<'a>>),
    ForEach {
        items: Projection,
        block: BlockName<'a>,
        concurrency: u32,
    },
    Branch {
        cases: Vec<(String, BlockName<'a>)>,
        default: Option<BlockName<'a>>,
    },
    DoWhile(Repeated<'a>),
    DoUntil(Repeated<'a>),
    /// Refused already.
    Broken,
}

/// What is run again, and when.
pub(super) struct Repeated<'a> {
    pub(super) when: String,
    pub(super) block: BlockName<'a>,
    pub(super) max_iterations: u32,
}

/// A block's name where a container names it.
pub(super) struct BlockName<'a> {
    pub(super) name: String,
    pub(super) place: Place<'a>,
}

/// A block before it has found its container.
pub(super) struct LooseBlock<'a> {
    pub(super) steps: Vec<LooseStep<'a>>,
    pub(super) place: Place<'a>,
}

/// The blocks of a workflow, handed out one by one.
pub(super) struct Nesting<'a> {
    loose: BTreeMap<String, LooseBlock<'a>>,
    /// Blocks that found their container, and the line where it names them.
    taken: BTreeMap<String, usize>,
    /// Blocks around the one being filled.
    around: Vec<String>,
    /// A broken step may have named any block.
    has_broken_step: bool,
}

impl<'a> Nesting<'a> {
    pub(super) fn new(loose: BTreeMap<String, LooseBlock<'a>>) -> Self {
        Self { loose, taken: BTreeMap::new(), around: Vec::new(), has_broken_step: false }
    }

    /// Fills in the blocks of the steps.
    pub(super) fn nest(&mut self, steps: Vec<LooseStep<'a>>) -> Vec<StepDefinition> {
        let nested = |loose: LooseStep<'a>| {
            let LooseStep { mut step, contents, .. } = loose;
            step.kind = self.kind(contents);
            step
        };
        steps.into_iter().map(nested).collect()
    }

    fn kind(&mut self, contents: Contents<'a>) -> StepKind {
        match contents {
            Contents::Leaf(kind) => kind,
            Contents::When { when, block } => match self.take(&block) {
                Some(block) => StepKind::When { when, block },
                None => placeholder(),
            },
            Contents::All(names) => StepKind::All { blocks: self.take_all(&names) },
            Contents::Race(names) => StepKind::Race { blocks: self.take_all(&names) },
            Contents::ForEach { items, block, concurrency } => self
                .take(&block)
                .map_or_else(placeholder, |block| StepKind::ForEach { items, block, concurrency }),
            Contents::Branch { cases, default } => self.branch(cases, default.as_ref()),
            Contents::DoWhile(Repeated { when, block, max_iterations }) => {
                self.take(&block).map_or_else(placeholder, |block| StepKind::DoWhile {
                    when,
                    block,
                    max_iterations,
                })
            }
            Contents::DoUntil(Repeated { when, block, max_iterations }) => {
                self.take(&block).map_or_else(placeholder, |block| StepKind::DoUntil {
                    when,
                    block,
                    max_iterations,
                })
            }
            Contents::Broken => {
                self.has_broken_step = true;
                placeholder()
            }
        }
    }

    fn branch(
        &mut self,
        cases: Vec<(String, BlockName<'a>)>,
        default: Option<&BlockName<'a>>,
    ) -> StepKind {
        let taken =
            |(when, block): (String, BlockName<'a>)| Some(Case { when, block: self.take(&block)? });
        let cases: Vec<Case> = cases.into_iter().filter_map(taken).collect();
        let default = default.and_then(|block| self.take(block));
        if cases.is_empty() { placeholder() } else { StepKind::Branch { cases, default } }
    }

    fn take_all(&mut self, names: &[BlockName<'a>]) -> Vec<Block> {
        names.iter().filter_map(|name| self.take(name)).collect()
    }

    fn take(&mut self, wanted: &BlockName<'a>) -> Option<Block> {
        let BlockName { name, place } = wanted;
        if self.around.len() == DEPTH_MAX {
            place.refuse(format!("blocks are nested deeper than {DEPTH_MAX} levels"));
            self.has_broken_step = true;
            return None;
        }
        let Some(block) = self.loose.remove(name) else {
            self.refuse(wanted);
            return None;
        };
        self.taken.insert(name.clone(), place.spot().line);
        self.around.push(name.clone());
        let steps = self.nest(block.steps);
        self.around.pop();
        Some(Block { name: name.clone(), steps })
    }

    fn refuse(&self, wanted: &BlockName<'a>) {
        let BlockName { name, place } = wanted;
        match self.taken.get(name) {
            Some(_) if self.around.contains(name) => {
                place.refuse(format!("block {name} contains itself"));
            }
            Some(line) => {
                place.refuse(format!("block {name} belongs to the step at line {line} already"));
            }
            None => {
                let known = self.loose.keys().chain(self.taken.keys()).map(String::as_str);
                let problem = place.spot().error(format!("there is no block {name}"));
                place.findings.report(problem.meant(nearest(name, known)));
            }
        }
    }

    /// Refuses the blocks that no step reaches. Says whether every block has found its container.
    pub(super) fn close(self) -> bool {
        if self.has_broken_step {
            return false;
        }
        let is_whole = self.loose.is_empty();
        for block in self.loose.into_values() {
            block.place.refuse("no step reaches this block");
        }
        is_whole
    }
}
