//! Orders: commands for executions, as one member sends them to another.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot::Sender;

use crate::commands::{ControlCommand, ExecutionCommand, ResumeCommand, StartAnswer, Subject};
use crate::domain::fact::Start;
use crate::domain::ids::ExecutionId;
use crate::domain::machine::Resume;
use crate::domain::principal::Principal;
use crate::ports::store::{IdempotencyRecord, read_stored};
use crate::requests::{AskAccess, Subscriber, Unavailable};

/// A command for an execution of another member.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) execution: ExecutionId,
    pub(crate) command: OrderedCommand,
}

/// The commands that are sent to other members. The others are repeated by timers in the store, or
/// concern this process alone.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum OrderedCommand {
    Start {
        start: Box<Start>,
        idempotency: Option<IdempotencyRecord>,
        answered: AnswerTime,
        /// True if the facts are to follow the answer.
        streams: bool,
        /// True if the progress of steps is to follow with them.
        #[serde(default)]
        progress: bool,
    },
    Suspend(Control),
    Resume {
        subject: Subject,
        resume: Resume,
        idempotency: Option<IdempotencyRecord>,
    },
    PassResume {
        subject: Subject,
        resume: Resume,
        idempotency: Option<IdempotencyRecord>,
        /// Unknown to servers of older versions.
        #[serde(default)]
        access: Box<AskAccess>,
    },
    Cancel(Control),
    AwaitOutcome {
        subject: Option<Subject>,
        after_seq: u64,
    },
    Why {
        subject: Option<Subject>,
    },
    Subscribe {
        subject: Subject,
        /// True if the progress of steps is to follow with the facts.
        #[serde(default)]
        progress: bool,
    },
}

/// Time of the answer to a start.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum AnswerTime {
    /// The execution leaves `running`.
    OnSettled,
    /// The start is durable.
    AtStart,
}

/// A suspend or a cancel.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Control {
    pub(crate) subject: Subject,
    pub(crate) reason: Option<String>,
    pub(crate) by: Option<Arc<Principal>>,
}

impl Order {
    /// Returns the order for a command; `None` for one that stays in this process.
    pub(crate) fn of(execution: &ExecutionId, command: &ExecutionCommand) -> Option<Self> {
        let control = |subject: &Subject, reason: &Option<String>, by: &Option<Arc<Principal>>| {
            Control { subject: subject.clone(), reason: reason.clone(), by: by.clone() }
        };
        let command = match command {
            ExecutionCommand::Start(command) => OrderedCommand::Start {
                start: command.start.clone(),
                idempotency: command.idempotency.clone(),
                answered: match command.answer {
                    StartAnswer::OnSettled(_) => AnswerTime::OnSettled,
                    StartAnswer::AtStart(_) => AnswerTime::AtStart,
                    // a child is in the slot of its parent
                    StartAnswer::Parent(_) => return None,
                },
                streams: command.subscriber.is_some(),
                progress: command.subscriber.as_ref().is_some_and(wants_progress),
            },
            ExecutionCommand::Suspend(ControlCommand { subject, reason, by, .. }) => {
                OrderedCommand::Suspend(control(subject, reason, by))
            }
            ExecutionCommand::Cancel(ControlCommand { subject, reason, by, .. }) => {
                OrderedCommand::Cancel(control(subject, reason, by))
            }
            ExecutionCommand::Resume(command) => {
                let ResumeCommand { subject, resume, idempotency, .. } = &**command;
                let (subject, resume) = (subject.clone(), resume.clone());
                OrderedCommand::Resume { subject, resume, idempotency: idempotency.clone() }
            }
            ExecutionCommand::PassResume {
                subject: Some(subject),
                resume,
                idempotency,
                access,
                ..
            } => OrderedCommand::PassResume {
                subject: subject.clone(),
                resume: resume.clone(),
                idempotency: idempotency.clone(),
                access: Box::new(access.clone()),
            },
            ExecutionCommand::AwaitOutcome { subject, after_seq, .. } => {
                let (subject, after_seq) = (subject.clone(), *after_seq);
                OrderedCommand::AwaitOutcome { subject, after_seq }
            }
            ExecutionCommand::Why { subject, .. } => {
                OrderedCommand::Why { subject: subject.clone() }
            }
            ExecutionCommand::Subscribe { subject, subscriber, .. } => {
                let (subject, progress) = (subject.clone(), wants_progress(subscriber));
                OrderedCommand::Subscribe { subject, progress }
            }
            ExecutionCommand::Describe { .. }
            | ExecutionCommand::Copy { .. }
            | ExecutionCommand::Timer(_)
            | ExecutionCommand::ChildReported { .. }
            | ExecutionCommand::Report { .. }
            | ExecutionCommand::PassResume { subject: None, .. }
            | ExecutionCommand::Continue
            | ExecutionCommand::Abort { .. }
            | ExecutionCommand::Stop { .. } => return None,
        };
        Some(Self { execution: execution.clone(), command })
    }

    /// Returns true if the order may be sent again when its owner was lost while it carried it out:
    /// a read, or a change whose key shows whether it was made.
    pub(crate) fn is_repeatable(&self) -> bool {
        match &self.command {
            OrderedCommand::Start { idempotency, .. }
            | OrderedCommand::Resume { idempotency, .. }
            | OrderedCommand::PassResume { idempotency, .. } => idempotency.is_some(),
            OrderedCommand::Suspend(_) | OrderedCommand::Cancel(_) => false,
            OrderedCommand::AwaitOutcome { .. }
            | OrderedCommand::Why { .. }
            | OrderedCommand::Subscribe { .. } => true,
        }
    }
}

fn wants_progress(subscriber: &Subscriber) -> bool {
    subscriber.progress.is_some()
}

/// Answers a command with what its owner answered. Returns its subscriber, if it has one that is to
/// get the facts that follow.
pub(crate) fn pass_answer(
    id: &ExecutionId,
    command: ExecutionCommand,
    json: &[u8],
) -> Option<Subscriber> {
    let mut subscriber = None;
    match command {
        ExecutionCommand::Start(command) => {
            subscriber = command.subscriber;
            match command.answer {
                StartAnswer::OnSettled(answer) => pass(id, answer, json),
                StartAnswer::AtStart(answer) => pass(id, answer, json),
                StartAnswer::Parent(_) => {}
            }
        }
        ExecutionCommand::Suspend(command) => pass(id, command.answer, json),
        ExecutionCommand::Cancel(command) => pass(id, command.answer, json),
        ExecutionCommand::Resume(command) => pass(id, command.answer, json),
        ExecutionCommand::PassResume { answer, .. } => pass(id, answer, json),
        ExecutionCommand::AwaitOutcome { answer, .. } => pass(id, answer, json),
        ExecutionCommand::Why { answer, .. } => pass(id, answer, json),
        ExecutionCommand::Subscribe { answer, subscriber: of_command, .. } => {
            subscriber = Some(of_command);
            pass(id, answer, json);
        }
        // these are not forwarded
        local @ (ExecutionCommand::Describe { .. }
        | ExecutionCommand::Copy { .. }
        | ExecutionCommand::Timer(_)
        | ExecutionCommand::ChildReported { .. }
        | ExecutionCommand::Report { .. }
        | ExecutionCommand::Continue
        | ExecutionCommand::Abort { .. }
        | ExecutionCommand::Stop { .. }) => {
            local.refuse(Unavailable::Moved { execution: Some(id.clone()) });
        }
    }
    subscriber
}

fn pass<T, E>(id: &ExecutionId, answer: Sender<Result<T, E>>, json: &[u8])
where
    T: DeserializeOwned + Send,
    E: DeserializeOwned + Send + From<Unavailable>,
{
    let result = read_stored(json).unwrap_or_else(|error| {
        log::error!("the answer of another server about execution {id} is not understood: {error}");
        Err(E::from(Unavailable::Moved { execution: Some(id.clone()) }))
    });
    // an error: the caller has disconnected
    let _ = answer.send(result);
}
