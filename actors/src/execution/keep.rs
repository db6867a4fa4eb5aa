//! States that are kept beside the facts, so that rebuilding an execution costs the same however
//! long its history is.
//!
//! A kept state is a saving and no truth: one that this build cannot use is passed over, and the
//! facts are folded instead.

use actix::{Context, Handler, Message};
use serde::{Deserialize, Serialize};

use crate::domain::state::State;
use crate::execution::{ExecutionActor, Life};
use crate::mailbox::tell;
use crate::ports::store::KeptState;
use crate::supervisor::Kept;

/// Events after which an execution at work keeps its state, in the commit that gets there.
const KEEP_EVERY: u64 = 500;
/// Events after which one that leaves memory does. Folding fewer costs less than a state does:
/// most of what waits is rebuilt from the few facts in its own row.
const KEEP_AT_REST: u64 = 32;

/// The form in which [`State`] is written. To be raised with every change of it that the older
/// form could be read as, in whole or in part: fields that an older state lacks would be what
/// their defaults say, and not what the facts do.
///
/// 2: since when a node stands where it stands, what an andForEach step goes over, the block that
/// an andBranch step has chosen.
///
/// 3: which attempts of a step failed, and of what kind failures are.
///
/// 4: who suspended, resumed and cancelled, and the ids of suspensions.
const FORM: u32 = 4;

#[derive(Serialize)]
struct Written<'a> {
    form: u32,
    state: &'a State,
}

#[derive(Deserialize)]
struct Form {
    form: u32,
}

#[derive(Deserialize)]
struct Read {
    state: State,
}

/// A state as it is kept. None where it cannot be written down: the facts can do without.
pub(crate) fn write_state(state: &State) -> Option<Vec<u8>> {
    serde_json::to_vec(&Written { form: FORM, state }).ok()
}

/// The state that was kept, if it is one of this build's form.
pub(crate) fn read_state(bytes: &[u8]) -> Option<State> {
    let Form { form } = serde_json::from_slice(bytes).ok()?;
    if form != FORM {
        return None;
    }
    serde_json::from_slice(bytes).ok().map(|Read { state }| state)
}

/// Asks an execution that is about to leave memory to keep its state first.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct KeepState;

impl Life {
    /// The state to be kept with the facts that are being recorded.
    pub(super) fn state_if_due(&mut self) -> Option<Vec<u8>> {
        self.is_unkept_for(KEEP_EVERY).then(|| self.keep_state())?
    }

    /// Whether the state is to be kept before the execution leaves memory.
    pub(super) fn is_to_be_kept(&self) -> bool {
        self.is_unkept_for(KEEP_AT_REST)
    }

    fn is_unkept_for(&self, events: u64) -> bool {
        let state = self.machine.state();
        state.end.is_none() && state.last_seq() >= self.kept_seq + events
    }

    fn keep_state(&mut self) -> Option<Vec<u8>> {
        let state = self.machine.state();
        let bytes = write_state(state)?;
        self.kept_seq = state.last_seq();
        Some(bytes)
    }
}

impl Handler<KeepState> for ExecutionActor {
    type Result = ();

    /// The supervisor still knows this actor, so nobody else can have recorded anything since, and
    /// whatever is recorded later is queued behind this.
    fn handle(&mut self, _: KeepState, _: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        if !life.pending.is_empty() {
            return;
        }
        if let Some(state) = life.keep_state() {
            let (execution, row) = (self.id.clone(), life.row);
            let last_seq = life.kept_seq;
            self.core.store.keep_state(KeptState { execution, row, last_seq, state });
        }
        tell(&self.supervisor, Kept { key: self.key, handled: self.handled });
    }
}

#[cfg(test)]
mod tests;
