//! Tools of agents.

use std::sync::Arc;

use greenroom_actors::agent::Approval;
use greenroom_actors::agent::tool::{ToolContext, ToolError};
use serde_json::Value;

use super::Greenroom;
use crate::builder::{Checked, Made, Tool, approval_problems};
use crate::config::ConfigProblem;
use crate::nearest::nearest;
#[cfg(feature = "schemars")]
use crate::typed::TypedFunction;

impl Greenroom {
    /// Registers a tool that agents can use by its name: 1 to 64 letters, digits, `_`, `.` or
    /// `-`. `parameters` is the JSON Schema of the arguments, of type `object`; the function only
    /// receives arguments that match it. Replaces a tool of the configuration with the same name.
    ///
    /// The function shares its thread with other work and is limited by `[limits] tool_timeout`. An
    /// error or panic is reported to the model.
    ///
    /// ```
    /// use greenroom::Greenroom;
    /// use serde_json::json;
    ///
    /// let parameters = json!({ "type": "object", "required": ["order"],
    ///     "properties": { "order": { "type": "string" } } });
    /// let server = Greenroom::new().tool(
    ///     "order_status",
    ///     "Returns the status of an order",
    ///     parameters,
    ///     |arguments, _context| async move { Ok(json!([arguments["order"], "on its way"])) },
    /// );
    /// # drop(server);
    /// ```
    #[must_use]
    pub fn tool<F, R>(self, name: &str, description: &str, parameters: Value, function: F) -> Self
    where
        F: Fn(Value, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        self.define_tool(Tool::function(name, description, parameters, function))
    }

    /// Registers a tool over types: the JSON Schema of its parameters is that of its argument, which
    /// therefore has to be a structure or a map. Doc comments of fields become descriptions for the
    /// model. The function takes the argument and, if needed, [`Data`](crate::typed::Data) before
    /// and the [`ToolContext`] after it; see [`crate::typed`].
    ///
    /// ```
    /// use greenroom::Greenroom;
    /// use greenroom::schemars::{self, JsonSchema};
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Order {
    ///     /// Number of the order, without `#`
    ///     number: u32,
    /// }
    ///
    /// let server = Greenroom::new().typed_tool(
    ///     "order_status",
    ///     "Returns the status of an order",
    ///     |order: Order| async move { Ok(format!("{} is on its way", order.number)) },
    /// );
    /// # drop(server);
    /// ```
    #[cfg(feature = "schemars")]
    #[must_use]
    pub fn typed_tool<F, Shape>(self, name: &str, description: &str, function: F) -> Self
    where
        F: TypedFunction<ToolContext, Shape>,
        F::Input: schemars::JsonSchema,
    {
        self.define_tool(Tool::typed(name, description, function))
    }

    /// Requires approval of calls that agents make of a tool which was registered before.
    ///
    /// ```
    /// use greenroom::Greenroom;
    /// use greenroom::tool::Approval;
    /// use serde_json::json;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let parameters = json!({ "type": "object", "required": ["amount"],
    ///     "properties": { "amount": { "type": "number" } } });
    /// let approval = Approval::when("args.amount > 100")?.reason("Refund {{ args.amount }}")?;
    /// let server = Greenroom::new()
    ///     .tool("refund", "Refunds an order", parameters, |arguments, _context| async move {
    ///         Ok(json!({ "refunded": arguments["amount"] }))
    ///     })
    ///     .approval("refund", approval);
    /// # drop(server);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn approval(mut self, tool: &str, approval: Approval) -> Self {
        let checked = |parameters| approval_problems(tool, parameters, &approval);
        if let Some(found) = self.registry.tools.get_mut(tool) {
            let problems = checked(Some(&found.spec.parameters));
            Arc::make_mut(found).approval = Some(Arc::new(approval));
            self.note(problems);
        } else if let Some(found) = self.config.coded_tool(tool) {
            let problems = checked(found.parameters.as_ref());
            found.approval = Some(approval);
            self.note(problems);
        } else if self.refused_tools.contains(tool) {
            let problems = checked(None);
            self.note(problems);
        } else {
            let names = self.registry.tools.keys().map(String::as_str);
            let names = names.chain(self.config.coded_tools().map(|(name, _)| name.as_str()));
            let meant = nearest(tool, names);
            let meant = meant.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
            self.problems.push(format!("approval of tool {tool}: it is not registered{meant}"));
        }
        self
    }

    /// Registers a tool of any kind. Replaces a tool of the configuration with the same name. What is
    /// wrong with it is refused when the server starts.
    ///
    /// ```
    /// use greenroom::Greenroom;
    /// use greenroom::builder::{Agent, Tool};
    ///
    /// let server = Greenroom::new()
    ///     .agent(Agent::new("researcher").model("offline"))
    ///     .define_tool(Tool::agent("research", "Looks things up", "researcher").concurrency(2));
    /// # drop(server);
    /// ```
    #[must_use]
    pub fn define_tool(mut self, tool: Tool) -> Self {
        let Checked { name, made, problems } = tool.check();
        self.note(problems);
        let is_known = self.registry.tools.contains_key(&name);
        let is_new = match made {
            None => {
                self.refused_tools.insert(name.clone());
                true
            }
            Some(Made::Function(tool, binding)) => {
                self.bindings.extend(binding);
                let is_coded = self.config.coded_tool(&name).is_some();
                self.registry.tools.insert(name.clone(), Arc::from(tool));
                !is_known && !is_coded
            }
            Some(Made::Configured(tool)) => self.config.add_tool(&name, *tool) && !is_known,
        };
        if !is_new {
            self.problems.push(format!("tool {name} is registered twice"));
        }
        self
    }

    /// Keeps errors and warnings.
    pub(super) fn note(&mut self, problems: Vec<ConfigProblem>) {
        let (errors, warnings): (Vec<_>, _) =
            problems.into_iter().partition(ConfigProblem::is_error);
        self.problems.extend(errors.iter().map(ToString::to_string));
        self.config.warnings.extend(warnings);
    }
}

#[cfg(test)]
mod tests;
