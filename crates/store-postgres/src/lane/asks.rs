//! Changes of asks in a batch, and their parameters.

use std::collections::BTreeMap;

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{AskState, GenerationRecord, Header, Row};
use greenroom_store_codec::codes::{ask_kind_code, ask_state_code};
use greenroom_store_codec::prepared::{PreparedAnswer, PreparedAsk, PreparedAskChange};
use greenroom_store_codec::records::NO_DEADLINE;

use super::parameters::{Parameters, code};
use crate::text::Text;

/// The execution or the generation that an ask belongs to.
#[derive(Clone, Copy)]
pub(crate) enum Owner<'b> {
    Execution { row: Row, header: &'b Header },
    Generation(&'b GenerationRecord),
}

impl<'b> Owner<'b> {
    fn user_id(self) -> Option<&'b str> {
        match self {
            Self::Execution { header, .. } => header.user_id.as_deref(),
            Self::Generation(record) => record.user_id.as_deref(),
        }
    }
}

/// Changes of asks, by id.
#[derive(Default)]
pub(crate) struct FoldedAsks<'b>(pub(super) BTreeMap<&'b str, FoldedAsk<'b>>);

/// Changes of an ask in a batch.
#[derive(Default)]
pub(super) struct FoldedAsk<'b> {
    /// Stored, unless the ask is there.
    pub(super) opened: Option<OpenedAsk<'b>>,
    /// Closes an ask that is stored before the batch.
    pub(super) closed: Option<Closing<'b>>,
}

/// An ask that a batch opens, and closes again perhaps.
pub(crate) struct OpenedAsk<'b> {
    pub(super) prepared: &'b PreparedAsk,
    pub(super) of: Owner<'b>,
    pub(super) closed: Option<Closing<'b>>,
}

impl<'b> OpenedAsk<'b> {
    /// Returns the tool of a call.
    pub(crate) fn tool_name(&self) -> Option<&'b str> {
        self.prepared.ask.tool_name.as_deref()
    }
}

/// The end of an ask.
#[derive(Clone, Copy)]
pub(super) struct Closing<'b> {
    pub(super) state: AskState,
    pub(super) at: Timestamp,
    pub(super) answer: Option<&'b PreparedAnswer>,
}

impl<'b> Closing<'b> {
    fn answer(self) -> Option<Text<&'b str>> {
        self.answer.map(|answer| Text(&*answer.json))
    }

    fn answered_by(self) -> Option<Text<&'b str>> {
        self.answer.and_then(|answer| answer.by.as_deref()).map(Text)
    }
}

impl<'b> FoldedAsks<'b> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the changes of a write.
    pub(crate) fn add(&mut self, of: Owner<'b>, changes: &'b [PreparedAskChange]) {
        for change in changes {
            match change {
                PreparedAskChange::Open(prepared) => {
                    let opened = OpenedAsk { prepared, of, closed: None };
                    let folded = self.0.entry(&prepared.ask.id).or_default();
                    folded.opened.get_or_insert(opened);
                }
                PreparedAskChange::Close { id, state, at, answer } => {
                    let closing = Closing { state: *state, at: *at, answer: answer.as_ref() };
                    let folded = self.0.entry(id).or_default();
                    if let Some(opened) = &mut folded.opened {
                        opened.closed.get_or_insert(closing);
                    }
                    folded.closed.get_or_insert(closing);
                }
            }
        }
    }

    /// Returns the asks that open of executions, with those.
    pub(super) fn opened_by_executions(&self) -> Vec<(&OpenedAsk<'b>, Row, &'b Header)> {
        let of = |ask: &'_ OpenedAsk<'b>| match ask.of {
            Owner::Execution { row, header } => Some((row, header)),
            Owner::Generation(_) => None,
        };
        self.opened().filter_map(|ask| of(ask).map(|(row, header)| (ask, row, header))).collect()
    }

    /// Returns the asks that open of generations, with those.
    pub(crate) fn opened_by_generations(&self) -> Vec<(&OpenedAsk<'b>, &'b GenerationRecord)> {
        let of = |ask: &'_ OpenedAsk<'b>| match ask.of {
            Owner::Execution { .. } => None,
            Owner::Generation(record) => Some(record),
        };
        self.opened().filter_map(|ask| of(ask).map(|record| (ask, record))).collect()
    }

    fn opened(&self) -> impl Iterator<Item = &OpenedAsk<'b>> {
        self.0.values().filter_map(|folded| folded.opened.as_ref())
    }
}

impl<'b> Parameters<'b> {
    /// Adds the columns of asks that open, without those of their execution or generation.
    pub(crate) fn open_asks(&mut self, opened: &[&OpenedAsk<'b>]) {
        self.column(opened, |it| Text(&*it.prepared.ask.id));
        self.column(opened, |it| it.prepared.ask.opened_at.0);
        self.column(opened, |it| it.prepared.ask.deadline.unwrap_or(NO_DEADLINE).0);
        self.column(opened, |it| it.closed.map(|closing| closing.at.0));
        self.column(opened, |it| code(ask_kind_code(it.prepared.ask.kind)));
        let state = |it: &&OpenedAsk<'b>| it.closed.map_or(AskState::Open, |it| it.state);
        self.column(opened, |it| code(ask_state_code(state(it))));
        self.column(opened, |it| Text(&*it.prepared.ask.place));
        self.column(opened, |it| it.of.user_id().map(Text));
        self.column(opened, |it| Text(&*it.prepared.ask.reason));
        self.column(opened, |it| it.prepared.rules.as_deref().map(Text));
        self.column(opened, |it| it.prepared.ask.next_due.map(|at| at.0));
        self.column(opened, |it| it.prepared.details.as_deref().map(Text));
        self.column(opened, |it| it.closed.and_then(Closing::answer));
        self.column(opened, |it| it.closed.and_then(Closing::answered_by));
    }

    /// Adds the columns of asks that close.
    pub(crate) fn close_asks(&mut self, asks: &FoldedAsks<'b>) {
        let closed = asks.0.iter().filter_map(|(id, it)| Some((*id, it.closed?)));
        let closed: Vec<_> = closed.collect();
        self.column(&closed, |(id, _)| Text(*id));
        self.column(&closed, |(_, it)| code(ask_state_code(it.state)));
        self.column(&closed, |(_, it)| it.at.0);
        self.column(&closed, |(_, it)| it.answer());
        self.column(&closed, |(_, it)| it.answered_by());
    }
}
