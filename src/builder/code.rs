//! Code that steps carry until their workflow is registered.

use super::closure::Closure;
use crate::typed::Carried;

/// Functions and closures of steps.
#[derive(Debug, Clone, Default)]
pub(crate) struct Code {
    pub(crate) functions: Vec<Carried>,
    /// Closures by their names in the definition.
    pub(crate) closures: Vec<(String, Closure)>,
}

impl Code {
    pub(super) fn add(&mut self, other: Self) {
        self.functions.extend(other.functions);
        self.closures.extend(other.closures);
    }
}
