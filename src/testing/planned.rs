//! Answers of a case: planned, due once they are asked for, taken or refused.

use std::time::Duration;

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{Ask, AskState};
use serde_json::Value;

use super::answer::{AnswerError, Answerer};

/// An answer that is given some time after it was asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlannedAnswer {
    /// Id or path of the step, or name of the tool.
    pub(crate) about: String,
    pub(crate) after: Duration,
    pub(crate) data: Value,
    /// `None`: the test, which may answer everything.
    pub(crate) by: Option<Answerer>,
    /// Part of the reason with which it is to be refused.
    pub(crate) refusal: Option<String>,
}

/// A planned answer, and the ask that it is for once that is open.
#[derive(Debug)]
pub(super) struct Pending<'c> {
    pub(super) planned: &'c PlannedAnswer,
    ask: Option<Ask>,
    is_asked: bool,
    end: Option<End>,
}

/// End of a planned answer.
#[derive(Debug, PartialEq)]
enum End {
    Taken,
    Refused(AnswerError),
    /// The ask passed its deadline before the answer was due.
    Late,
}

impl<'c> Pending<'c> {
    pub(super) fn new(planned: &'c PlannedAnswer) -> Self {
        Self { planned, ask: None, is_asked: false, end: None }
    }

    /// Returns the ask that it is for, until it is given.
    pub(super) fn ask(&self) -> Option<&Ask> {
        self.ask.as_ref().filter(|_| self.end.is_none())
    }

    /// Returns the time of the answer; `None` before it is asked for, and afterwards.
    pub(super) fn due(&self) -> Option<Timestamp> {
        let after = u64::try_from(self.planned.after.as_millis()).unwrap_or(u64::MAX);
        Some(self.ask()?.opened_at.plus_ms(after))
    }

    /// Returns true if it may be the answer to an ask.
    pub(super) fn is_free(&self) -> bool {
        self.ask.is_none()
    }

    /// Returns true if no other answer is for this ask: one that is refused leaves it to the next.
    pub(super) fn is_for(&self, id: &str) -> bool {
        let is_refused = matches!(self.end, Some(End::Refused(_)));
        !is_refused && self.ask.as_ref().is_some_and(|ask| *ask.id == *id)
    }

    pub(super) fn assign(&mut self, ask: Ask) {
        (self.ask, self.is_asked) = (Some(ask), true);
    }

    /// Notes that the ask is no longer open: a crash may have hidden that the answer was taken, or
    /// replaced the ask by another.
    pub(super) fn closed(&mut self, state: Option<AskState>) {
        match state {
            Some(AskState::Answered) => self.end = Some(End::Taken),
            Some(AskState::Expired) => self.end = Some(End::Late),
            Some(AskState::Open | AskState::Withdrawn) | None => self.ask = None,
        }
    }

    /// Notes that it was given.
    pub(super) fn given(&mut self, answered: Result<(), AnswerError>) {
        self.end = Some(answered.map_or_else(End::Refused, |()| End::Taken));
    }

    /// Returns what the answer is about and why it was refused, if it was.
    pub(super) fn refusal(&self) -> Option<String> {
        match &self.end {
            Some(End::Refused(why)) => Some(format!("{}: {why}", self.planned.about)),
            Some(End::Taken | End::Late) | None => None,
        }
    }

    /// Returns the difference between what was planned and what happened. Answers are counted from
    /// 1 on.
    pub(super) fn problem(&self, number: usize) -> Option<String> {
        let PlannedAnswer { about, refusal: expected, .. } = self.planned;
        let answer = format!("answer {number} ({about})");
        match (&self.end, expected) {
            (Some(End::Taken), None) => None,
            (Some(End::Taken), Some(part)) => {
                Some(format!("{answer} is taken, expected a refusal with {part:?}"))
            }
            (Some(End::Refused(why)), None) => Some(format!("{answer} is refused: {why}")),
            (Some(End::Refused(why)), Some(part)) => {
                let is_expected = why.to_string().contains(part);
                (!is_expected).then(|| format!("{answer} is refused: {why}, without {part:?}"))
            }
            (Some(End::Late), _) => Some(format!("{answer} is too late: the deadline has passed")),
            (None, _) if self.is_asked => {
                Some(format!("{answer} is too late: the wait has ended before"))
            }
            (None, _) => Some(format!("{about} never asked for its answer")),
        }
    }
}
