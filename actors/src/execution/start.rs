//! The start of an execution, and repeated starts of one that exists.

use std::sync::Arc;

use actix::Context;

use crate::commands::{StartAnswer, StartCommand, StartRefusal};
use crate::domain::fact::Start;
use crate::domain::machine::Machine;
use crate::domain::time::Timestamp;
use crate::domain::trace::RootRow;
use crate::execution::outcome::{OutcomeAnswer, Ownership};
use crate::execution::record::AppendExtras;
use crate::execution::{ExecutionActor, LiveExecution, report_of};
use crate::ports::store::{Header, Row};
use crate::requests::StartError;

impl ExecutionActor {
    /// Starts the execution: the first command of its actor.
    pub(super) fn begin(&mut self, command: StartCommand, row: Row, ctx: &mut Context<Self>) {
        let StartCommand { plan, mut start, idempotency, subscriber, claim, answer, .. } = command;
        self.claim = Some(claim);
        start.trace = start.trace.anchored(RootRow::Execution(row));
        let header = self.header(&start);
        let id = self.id.clone();
        let (machine, batch) =
            self.shared.at_moment(&self.id, |moment| Machine::start(plan, id, start, moment));
        let header = Arc::new(Header { created_at: machine.state().created_at, ..header });
        self.life = Some(LiveExecution::new(row, header, machine));
        if let Some(subscriber) = subscriber {
            self.add_subscriber(subscriber, ctx);
        }
        self.record(batch, AppendExtras { idempotency, timers: Vec::new() }, ctx);
        self.answer_start(answer);
    }

    fn answer_start(&mut self, answer: StartAnswer) {
        let Some(life) = &mut self.life else { return };
        // A rejected append of the start is answered through its waiters, so the caller is one.
        match answer {
            StartAnswer::OnSettled(_) => {
                self.wait_for_outcome(0, OutcomeAnswer::Start(answer), Ownership::NextAppend);
            }
            StartAnswer::AtStart(answer) => {
                let id = self.id.clone();
                self.answer_when_durable(answer, Ok(id));
            }
            StartAnswer::Parent(answer) => {
                let report = report_of(&life.machine);
                self.answer_when_durable(answer, Ok(report));
            }
        }
    }

    fn header(&self, start: &Start) -> Header {
        Header {
            id: self.id.clone(),
            workflow_id: Arc::clone(&start.workflow_id),
            definition_hash: Arc::clone(&start.definition_hash),
            user_id: start.user_id.clone(),
            conversation_id: start.conversation_id.clone(),
            parent: start.parent.clone(),
            trace: start.trace.clone(),
            created_at: Timestamp::default(),
        }
    }

    pub(super) fn exists_already(&mut self, command: StartCommand) {
        let Some(life) = &self.life else { return };
        let StartCommand { start, answer, .. } = command;
        match answer {
            StartAnswer::Parent(answer) if start.may_use(life.header.parent.as_ref()) => {
                let report = report_of(&life.machine);
                self.answer_when_durable(answer, Ok(report));
            }
            other => {
                let refusal = StartRefusal::Error(StartError::Exists(self.id.clone()));
                self.when_durable(Box::new(move |durable| match durable {
                    Ok(()) => other.refuse(refusal),
                    Err(why) => other.refuse(why.into()),
                }));
            }
        }
    }
}
