//! Tools of agents.

use std::sync::Arc;

use greenroom_actors::agent::Approval;
use greenroom_actors::agent::tool::{
    ToolBody, ToolContext, ToolDefinition, ToolError, ToolFunction,
};
use greenroom_actors::domain::plan::format_remarks;
use greenroom_actors::ports::model::ToolSpec;
use serde_json::Value;

use super::Greenroom;
use crate::config::tools::{name_problem, parameters_problem};
use crate::config::{Spot, remark_at};
#[cfg(feature = "schemars")]
use crate::schema;
#[cfg(feature = "schemars")]
use crate::typed::{TypedFunction, tool_function};

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
    pub fn tool<F, R>(
        mut self,
        name: &str,
        description: &str,
        parameters: Value,
        function: F,
    ) -> Self
    where
        F: Fn(Value, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        let function =
            Arc::new(move |arguments, context| -> futures_util::future::BoxFuture<'static, _> {
                Box::pin(function(arguments, context))
            });
        self.add_tool(name, description, parameters, function);
        self
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
    pub fn typed_tool<F, Shape>(mut self, name: &str, description: &str, function: F) -> Self
    where
        F: TypedFunction<ToolContext, Shape>,
        F::Input: schemars::JsonSchema,
    {
        let (function, binding) = tool_function(name, function);
        self.bindings.push(binding);
        self.add_tool(name, description, schema::inline::<F::Input>(), function);
        self
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
        match self.registry.tools.get_mut(tool) {
            Some(found) => Arc::make_mut(found).approval = Some(Arc::new(approval)),
            None => self.problems.push(format!("approval of tool {tool}: it is not registered")),
        }
        self
    }

    fn add_tool(&mut self, name: &str, description: &str, parameters: Value, run: ToolFunction) {
        let problem = name_problem(name).or_else(|| parameters_problem(&parameters));
        let (name, description) = (name.to_owned(), description.to_owned());
        let spec = ToolSpec { name: name.clone(), description, parameters };
        let made = ToolDefinition::new(spec, ToolBody::Function(run));
        match (problem, made) {
            (Some(problem), _) => self.problems.push(format!("tool {name}: {problem}")),
            (None, Err(error)) => self.problems.push(format!("tool {name}: {error}")),
            (None, Ok(tool)) => {
                let spot = Spot::nowhere(&format!("tool {name}"));
                let remarks = format_remarks(&tool.spec.parameters).into_iter();
                self.config.warnings.extend(remarks.map(|(place, remark)| {
                    let key = format!("parameters.{}", place.join("."));
                    remark_at(remark, &Spot { key, ..spot.clone() })
                }));
                if self.registry.tools.insert(name.clone(), Arc::new(tool)).is_some() {
                    self.problems.push(format!("tool {name} is registered twice"));
                }
            }
        }
    }
}
