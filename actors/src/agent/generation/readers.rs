//! Those who read a run live, and what those who come later missed.

use std::sync::Arc;

use actix::dev::RecipientRequest;

use crate::agent::event::{GenerationEvent, GenerationProgress, GenerationSubscriber};

/// Readers of one run that may come later; more are not taken.
const READERS_MAX: usize = 64;

/// Messages after which the first reader is asked for room: a model may be faster than a
/// connection. Fewer than an actor's mailbox takes by itself.
const AHEAD_MAX: usize = 8;

/// The readers of a run.
#[derive(Debug)]
pub(super) struct Readers {
    /// Who asked for the run, and reads it from the first event on.
    first: Option<GenerationSubscriber>,
    /// Messages to that one since it last had room.
    ahead: usize,
    /// Who came later.
    late: Vec<GenerationSubscriber>,
    replay: Option<Replay>,
    /// Whether the run goes on when nobody reads it.
    outlives_readers: bool,
}

/// What a run has said so far, for readers that come later; pieces of one text are joined.
#[derive(Debug)]
pub(super) struct Replay {
    events: Vec<GenerationEvent>,
    bytes_left: usize,
}

impl Replay {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { events: Vec::new(), bytes_left: bytes_max }
    }

    /// Whether there was room for it.
    fn keep(&mut self, events: &[GenerationEvent]) -> bool {
        for event in events {
            let is_joined = self.events.last_mut().is_some_and(|last| join(last, event));
            let own = if is_joined { 0 } else { size_of::<GenerationEvent>() };
            let Some(left) = self.bytes_left.checked_sub(own + bytes_of(event)) else {
                return false;
            };
            self.bytes_left = left;
            if !is_joined {
                self.events.push(event.clone());
            }
        }
        true
    }
}

impl Readers {
    pub(super) fn new(
        first: Option<GenerationSubscriber>,
        replay: Option<Replay>,
        outlives_readers: bool,
    ) -> Self {
        Self { first, ahead: 0, late: Vec::new(), replay, outlives_readers }
    }

    /// Whether there is anybody to speak to, now or later.
    pub(super) fn are_expected(&self) -> bool {
        self.first.is_some() || !self.late.is_empty() || self.replay.is_some()
    }

    /// Leaves out the one who asked: it is told in another way how the run ended.
    pub(super) fn forget_first(&mut self) {
        self.first = None;
    }

    /// Tells everybody, and cuts those who cannot take it. Whether the run still has a purpose.
    pub(super) fn tell(&mut self, events: Vec<GenerationEvent>) -> bool {
        if self.replay.as_mut().is_some_and(|replay| !replay.keep(&events)) {
            self.replay = None;
        }
        let events = GenerationProgress(Arc::from(events));
        let takes = |reader: &GenerationSubscriber| {
            let taken = reader.events.try_send(events.clone()).is_ok();
            if !taken {
                (reader.cut)();
            }
            taken
        };
        self.first = self.first.take().filter(takes);
        self.ahead += 1;
        self.late.retain(takes);
        self.have_purpose()
    }

    /// Asks the first reader for room, where it was told much. To be awaited before it is told more.
    pub(super) fn ask_for_room(&mut self) -> Option<RecipientRequest<GenerationProgress>> {
        let first = self.first.as_ref().filter(|_| self.ahead >= AHEAD_MAX)?;
        self.ahead = 0;
        Some(first.events.send(GenerationProgress(Arc::from([]))))
    }

    /// Cuts the first reader. Whether the run still has a purpose.
    pub(super) fn lose_first(&mut self) -> bool {
        if let Some(first) = self.first.take() {
            (first.cut)();
        }
        self.have_purpose()
    }

    fn have_purpose(&self) -> bool {
        self.outlives_readers || self.first.is_some() || !self.late.is_empty()
    }

    /// Tells a new reader all that was said, and from now on what is said. Whether it was taken.
    pub(super) fn attach(&mut self, reader: GenerationSubscriber) -> bool {
        let Some(replay) = &self.replay else { return false };
        if self.late.len() >= READERS_MAX {
            return false;
        }
        if !replay.events.is_empty() {
            let missed = GenerationProgress(Arc::from(replay.events.as_slice()));
            if reader.events.try_send(missed).is_err() {
                return false;
            }
        }
        self.late.push(reader);
        true
    }
}

/// Adds a piece to the one before it, if they belong together.
fn join(last: &mut GenerationEvent, event: &GenerationEvent) -> bool {
    match (last, event) {
        (
            GenerationEvent::TextDelta { id, delta },
            GenerationEvent::TextDelta { id: next_id, delta: next },
        )
        | (
            GenerationEvent::ReasoningDelta { id, delta },
            GenerationEvent::ReasoningDelta { id: next_id, delta: next },
        )
        | (
            GenerationEvent::ToolInputDelta { tool_call_id: id, delta },
            GenerationEvent::ToolInputDelta { tool_call_id: next_id, delta: next },
        ) if id == next_id => {
            delta.push_str(next);
            true
        }
        _ => false,
    }
}

/// About what an event holds beside itself.
fn bytes_of(event: &GenerationEvent) -> usize {
    match event {
        GenerationEvent::TextDelta { delta, .. }
        | GenerationEvent::ReasoningDelta { delta, .. }
        | GenerationEvent::ToolInputDelta { delta, .. } => delta.len(),
        // the input was counted when it arrived
        GenerationEvent::ToolResult(result) => serde_json::json!(result.outcome).to_string().len(),
        GenerationEvent::ObjectRejected { detail } => detail.len(),
        GenerationEvent::Object(_)
        | GenerationEvent::ToolCall(_)
        | GenerationEvent::Start { .. }
        | GenerationEvent::StepStart
        | GenerationEvent::TextStart { .. }
        | GenerationEvent::TextEnd { .. }
        | GenerationEvent::ReasoningStart { .. }
        | GenerationEvent::ReasoningEnd { .. }
        | GenerationEvent::ToolInputStart { .. }
        | GenerationEvent::ToolInputEnd { .. }
        | GenerationEvent::StepFinish { .. }
        | GenerationEvent::Finish { .. }
        | GenerationEvent::Abort
        | GenerationEvent::Error { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use actix::{Actor, Context, Handler};

    use super::*;

    /// Keeps how many events each message had.
    struct Counting(Arc<Mutex<Vec<usize>>>);

    impl Actor for Counting {
        type Context = Context<Self>;
    }

    impl Handler<GenerationProgress> for Counting {
        type Result = ();

        fn handle(
            &mut self,
            GenerationProgress(events): GenerationProgress,
            _: &mut Context<Self>,
        ) {
            self.0.lock().unwrap().push(events.len());
        }
    }

    fn reader() -> (GenerationSubscriber, Arc<Mutex<Vec<usize>>>) {
        let counts = Arc::new(Mutex::new(Vec::new()));
        let events = Counting(Arc::clone(&counts)).start().recipient();
        (GenerationSubscriber { events, cut: Arc::new(|| {}) }, counts)
    }

    fn word(delta: &str) -> GenerationEvent {
        GenerationEvent::TextDelta { id: Arc::from("text-0"), delta: delta.to_owned() }
    }

    /// Room for so many events that hold so many bytes together.
    fn replay(events: usize, bytes: usize) -> Replay {
        Replay::new(events * size_of::<GenerationEvent>() + bytes)
    }

    #[actix::test]
    async fn what_was_said_is_told_again_in_one_piece() {
        let mut readers = Readers::new(None, Some(replay(2, 10)), true);
        assert!(readers.tell(vec![GenerationEvent::StepStart, word("abc"), word("def")]));
        assert!(readers.tell(vec![word("ghi")]));
        let (late, counts) = reader();
        assert!(readers.attach(late));
        readers.tell(vec![word("j")]);
        tokio::task::yield_now().await;
        assert_eq!(*counts.lock().unwrap(), [2, 1], "the words are joined");
    }

    #[actix::test]
    async fn a_run_that_has_said_too_much_takes_no_more_readers() {
        let rows = [
            ("words", word("0123456789"), word("!")),
            ("events without words", GenerationEvent::StepStart, GenerationEvent::StepStart),
        ];
        for (name, fits, is_too_much) in rows {
            let room = replay(1, bytes_of(&fits));
            let mut readers = Readers::new(None, Some(room), true);
            readers.tell(vec![fits]);
            assert!(readers.attach(reader().0), "{name}");
            assert!(readers.tell(vec![is_too_much]), "{name}: it goes on");
            assert!(!readers.attach(reader().0), "{name}");
        }
    }

    #[actix::test]
    async fn readers_are_bounded() {
        let mut readers = Readers::new(None, Some(replay(0, 10)), true);
        let taken = (0..READERS_MAX + 3).filter(|_| readers.attach(reader().0)).count();
        assert_eq!(taken, READERS_MAX);
    }

    #[actix::test]
    async fn one_that_can_be_found_by_nobody_takes_nobody() {
        let mut readers = Readers::new(Some(reader().0), None, false);
        assert!(!readers.attach(reader().0));
        assert!(readers.tell(vec![word("a")]));
    }
}
