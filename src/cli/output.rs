//! The form of what a command prints.

use clap::ValueEnum;

/// Form of the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object.
    Json,
}
