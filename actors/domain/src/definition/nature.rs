//! Types of the columns of the table of kinds of steps: what kinds have in common.

use serde_json::Value;

use super::Mapping;

/// Course of a step until it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// Its own work.
    Work,
    /// It waits for a time.
    Wait,
    /// Its blocks run.
    Blocks(Container),
}

/// Choice and order of the blocks of a container that run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// The only one, if the expression of the step is true.
    Optional,
    /// The first one whose expression is true. A last one without an expression runs otherwise.
    OneOf,
    /// All at once.
    All,
    /// All at once, until the first one completes.
    Race,
    /// The only one, once for each item.
    Items,
    /// The only one, round after round.
    Rounds,
}

impl Container {
    /// Returns true if its block runs many times, each time in a new lane.
    pub fn is_repeated(self) -> bool {
        match self {
            Self::Items | Self::Rounds => true,
            Self::Optional | Self::OneOf | Self::All | Self::Race => false,
        }
    }

    /// Returns true if the expressions of the step are the conditions of its blocks.
    pub fn is_conditional(self) -> bool {
        match self {
            Self::Optional | Self::OneOf => true,
            Self::All | Self::Race | Self::Items | Self::Rounds => false,
        }
    }

    /// Returns true if its block runs once for each item of a list.
    pub fn has_items(self) -> bool {
        match self {
            Self::Items => true,
            Self::Optional | Self::OneOf | Self::All | Self::Race | Self::Rounds => false,
        }
    }

    /// Returns true if the steps of a lane see the outputs of the lanes before it.
    pub fn sees_earlier_lanes(self) -> bool {
        match self {
            Self::Rounds => true,
            Self::Optional | Self::OneOf | Self::All | Self::Race | Self::Items => false,
        }
    }

    /// Returns true if the first lane to complete decides, whatever happens to the others.
    pub fn has_winner(self) -> bool {
        match self {
            Self::Race => true,
            Self::Optional | Self::OneOf | Self::All | Self::Items | Self::Rounds => false,
        }
    }
}

/// Name of what a step calls, by its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Called<N> {
    /// A registered function.
    Function(N),
    Tool(N),
    Agent(N),
    /// A workflow, as a child execution.
    Workflow(N),
}

impl<N> Called<N> {
    /// Returns true for a function of the program.
    pub fn is_function(&self) -> bool {
        match self {
            Self::Function(_) => true,
            Self::Tool(_) | Self::Agent(_) | Self::Workflow(_) => false,
        }
    }

    /// Returns the key of the name in a step.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Function(_) => "run",
            Self::Tool(_) => "tool",
            Self::Agent(_) => "agent",
            Self::Workflow(_) => "workflow",
        }
    }
}

/// Output of a step, as far as its kind says.
#[derive(Debug, Clone, Copy)]
pub enum Output<'d> {
    /// The value of a mapping.
    Mapping(&'d Mapping),
    /// The answer of an agent, of this schema if it has one.
    Answer(Option<&'d Value>),
    /// `data` passes through.
    Data,
    /// That of the block.
    OfBlock,
    /// An array of those of the block.
    ListOfBlock,
    /// An array of values of different shapes.
    List,
    Unknown,
}

/// Keys of a kind, in addition to those of every step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keys {
    /// Exactly one of them has to be there.
    pub(super) one_of: &'static [&'static str],
    pub(super) required: &'static [&'static str],
    pub(super) optional: &'static [&'static str],
}

/// Source of an expression, a template or a mapping.
#[derive(Debug, Clone, Copy)]
pub enum KindText<'d> {
    Expression(&'d str),
    Template(&'d str),
    Mapping(&'d Mapping),
}

/// The condition of a loop.
#[derive(Debug, Clone, Copy)]
pub struct LoopRule<'d> {
    pub when: &'d str,
    /// Value of `when` that starts another iteration.
    pub again_if: bool,
    pub max_iterations: u32,
}
