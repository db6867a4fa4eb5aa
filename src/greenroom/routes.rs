//! Routes to workflows, agents and files.

use super::Greenroom;
use crate::builder::Route;

impl Greenroom {
    /// Adds a route to a workflow, an agent or files, as `[[routes]]` in a file does. A path that
    /// overlaps with another route, and a target that does not exist, are refused when the server
    /// starts. [`Greenroom::routes`] adds routes with handlers.
    ///
    /// ```
    /// use greenroom::Greenroom;
    /// use greenroom::builder::{Route, Step, Workflow};
    /// use serde_json::json;
    ///
    /// let server = Greenroom::new()
    ///     .workflow(Workflow::new("order").step(Step::map("a", json!("input"))))
    ///     .route(Route::workflow("/orders", "order"));
    /// # drop(server);
    /// ```
    #[must_use]
    pub fn route(mut self, route: Route) -> Self {
        let problems = route.add_to(&mut self.config);
        self.problems.extend(problems.iter().map(ToString::to_string));
        self
    }
}

#[cfg(test)]
mod tests;
