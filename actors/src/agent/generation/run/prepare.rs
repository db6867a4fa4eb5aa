//! Prepares the first question of a run: what its agent, its caller and its conversation bring.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::agent::AgentDefinition;
use crate::agent::generation::memory::Remembered;
use crate::agent::generation::options::effective_options;
use crate::agent::generation::tools::Toolset;
use crate::agent::generation::turn::{
    Bounds, ClientTools, Question, STEPS_DEFAULT, Turns, choices, compile_schema, prompt,
};
use crate::agent::generation::{GenerateError, GenerationDeps};
use crate::domain::effort::{Budget, within};
use crate::ports::store::Period;
use crate::shard::evaluation::Cancel;

use super::start::RunInput;
use super::{Run, ending};

impl Run {
    /// Prepares the first question: schema, instructions, tools, conversation, options.
    pub(super) async fn prepare(
        &mut self,
        input: RunInput,
    ) -> Result<(Turns, Toolset), GenerateError> {
        // first: a caller's mistake leaves no trace in the history
        let schema = input.schema.map(compile_schema).transpose()?;
        let (instructions, toolset) = self.chosen().await?;
        let client_tools = ClientTools::checked(input.client_tools, &toolset.specs())?;
        self.withdraw_asks().await?;
        let read_from = self.deps.clock.now();
        let remembered = self.remember(&input.messages, input.sent, input.context_limit).await?;
        self.memory_read = remembered.as_ref().map(|_| {
            let end = Some(self.deps.clock.now());
            Period { start: read_from, end }
        });
        let (working_memory, older) = match remembered {
            Some(Remembered { working_memory, older, memory }) => {
                self.memory = Some(memory);
                (working_memory, older)
            }
            None => (None, Vec::new()),
        };
        let question = Question {
            messages: prompt::compose(
                instructions,
                working_memory.as_deref(),
                older,
                input.messages,
            ),
            client_tools,
            tool_choice: input.tool_choice,
            tools: toolset.specs(),
            schema,
            options: effective_options(input.options, &self.agent.options),
        };
        let steps = input.max_steps.or(self.agent.max_steps).unwrap_or(STEPS_DEFAULT);
        let bounds = Bounds {
            steps: steps.min(self.deps.steps_max).max(1),
            tokens: self.agent.budget.tokens,
            tool_calls: self.agent.budget.tool_calls,
            object_repairs: input.object_repairs.unwrap_or(self.deps.object_repairs),
        };
        Ok((Turns::new(question, bounds), toolset))
    }

    /// Evaluates the agent's instructions and tools, on a worker if that exceeds the budget of a
    /// turn.
    pub(super) async fn chosen(&self) -> Result<(Option<String>, Toolset), GenerateError> {
        fn choose(
            deps: &GenerationDeps,
            agent: &AgentDefinition,
            context: &Map<String, Value>,
        ) -> Result<(Option<String>, Toolset), GenerateError> {
            let instructions = choices::instructions(&deps.compiled, agent, context)?;
            Ok((instructions, choices::tools(&deps.compiled, &deps.registry, agent, context)?))
        }
        let Self { deps, agent, context, .. } = self;
        let (chosen, effort) = within(&Budget::turn(), || choose(deps, agent, context));
        if !effort.is_exceeded {
            return chosen;
        }
        let (own, agent, context) = (deps.clone(), Arc::clone(agent), Arc::clone(context));
        let chosen = deps.evaluations.evaluate(self.lane(), Cancel::default(), move |budget| {
            within(budget, || choose(&own, &agent, &context)).0
        });
        chosen.await.ok_or_else(ending)?
    }
}
