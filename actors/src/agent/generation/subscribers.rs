//! Live subscribers of a run, and the replay for those that join later.

use std::sync::Arc;

use actix::dev::RecipientRequest;

use crate::agent::event::{GenerationEvent, GenerationProgress, GenerationSubscriber};

/// Maximum number of subscribers that join one run later.
const LATE_SUBSCRIBERS_MAX: usize = 64;

/// Messages after which the first subscriber is asked for room: a model may be faster than a
/// connection. Below the default capacity of an actor's mailbox.
const AHEAD_MAX: usize = 8;

/// Subscribers of a run.
#[derive(Debug)]
pub(super) struct Subscribers {
    /// Subscriber that started the run, from the first event on.
    first: Option<GenerationSubscriber>,
    /// Messages to `first` since it last had room.
    ahead: usize,
    /// Subscribers that joined later.
    late: Vec<GenerationSubscriber>,
    replay: Option<Replay>,
    /// True if the run continues without subscribers.
    outlives_subscribers: bool,
}

/// All events so far, for late subscribers; consecutive deltas of one text are joined.
#[derive(Debug)]
pub(super) struct Replay {
    events: Vec<GenerationEvent>,
    bytes_left: usize,
}

impl Replay {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { events: Vec::new(), bytes_left: bytes_max }
    }

    /// Adds events; returns false if there is no room.
    fn push(&mut self, events: &[GenerationEvent]) -> bool {
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

impl Subscribers {
    pub(super) fn new(
        first: Option<GenerationSubscriber>,
        replay: Option<Replay>,
        outlives_subscribers: bool,
    ) -> Self {
        Self { first, ahead: 0, late: Vec::new(), replay, outlives_subscribers }
    }

    /// Returns true if events have a recipient, now or later.
    pub(super) fn are_expected(&self) -> bool {
        self.first.is_some() || !self.late.is_empty() || self.replay.is_some()
    }

    /// Drops the first subscriber without closing it: its caller gets the outcome from the handle.
    pub(super) fn forget_first(&mut self) {
        self.first = None;
    }

    /// Sends events to all, disconnecting those whose mailbox is full. Returns false if the run has
    /// lost its purpose.
    pub(super) fn send(&mut self, events: Vec<GenerationEvent>) -> bool {
        if self.replay.as_mut().is_some_and(|replay| !replay.push(&events)) {
            self.replay = None;
        }
        let events = GenerationProgress(Arc::from(events));
        let takes = |subscriber: &GenerationSubscriber| {
            let taken = subscriber.events.try_send(events.clone()).is_ok();
            if !taken {
                (subscriber.disconnect)();
            }
            taken
        };
        self.first = self.first.take().filter(takes);
        self.ahead += 1;
        self.late.retain(takes);
        self.have_purpose()
    }

    /// Asks the first subscriber for room if it is behind. Await the request before sending more.
    pub(super) fn ask_for_room(&mut self) -> Option<RecipientRequest<GenerationProgress>> {
        let first = self.first.as_ref().filter(|_| self.ahead >= AHEAD_MAX)?;
        self.ahead = 0;
        Some(first.events.send(GenerationProgress(Arc::from([]))))
    }

    /// Disconnects the first subscriber. Returns false if the run has lost its purpose.
    pub(super) fn lose_first(&mut self) -> bool {
        if let Some(first) = self.first.take() {
            (first.disconnect)();
        }
        self.have_purpose()
    }

    fn have_purpose(&self) -> bool {
        self.outlives_subscribers || self.first.is_some() || !self.late.is_empty()
    }

    /// Adds a subscriber and replays all events to it. Returns false if it was not taken.
    pub(super) fn attach(&mut self, subscriber: GenerationSubscriber) -> bool {
        let Some(replay) = &self.replay else { return false };
        if self.late.len() >= LATE_SUBSCRIBERS_MAX {
            return false;
        }
        if !replay.events.is_empty() {
            let missed = GenerationProgress(Arc::from(replay.events.as_slice()));
            if subscriber.events.try_send(missed).is_err() {
                return false;
            }
        }
        self.late.push(subscriber);
        true
    }
}

/// Appends a delta to the event before it if they belong to one text.
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

/// Returns the approximate heap bytes of an event.
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
        | GenerationEvent::Ask(_)
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

    /// Records the number of events of each message.
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

    fn late_subscriber() -> (GenerationSubscriber, Arc<Mutex<Vec<usize>>>) {
        let counts = Arc::new(Mutex::new(Vec::new()));
        let events = Counting(Arc::clone(&counts)).start().recipient();
        (GenerationSubscriber { events, disconnect: Arc::new(|| {}) }, counts)
    }

    fn word(delta: &str) -> GenerationEvent {
        GenerationEvent::TextDelta { id: Arc::from("text-0"), delta: delta.to_owned() }
    }

    /// Returns a replay with room for `events` events of `bytes` bytes in total.
    fn replay(events: usize, bytes: usize) -> Replay {
        Replay::new(events * size_of::<GenerationEvent>() + bytes)
    }

    #[actix::test]
    async fn a_late_subscriber_gets_joined_deltas() {
        let mut subscribers = Subscribers::new(None, Some(replay(2, 10)), true);
        assert!(subscribers.send(vec![GenerationEvent::StepStart, word("abc"), word("def")]));
        assert!(subscribers.send(vec![word("ghi")]));
        let (late, counts) = late_subscriber();
        assert!(subscribers.attach(late));
        subscribers.send(vec![word("j")]);
        tokio::task::yield_now().await;
        assert_eq!(*counts.lock().unwrap(), [2, 1], "deltas are joined");
    }

    #[actix::test]
    async fn a_full_replay_takes_no_more_subscribers() {
        let rows = [
            ("text", word("0123456789"), word("!")),
            ("events without text", GenerationEvent::StepStart, GenerationEvent::StepStart),
        ];
        for (name, fits, is_too_much) in rows {
            let room = replay(1, bytes_of(&fits));
            let mut subscribers = Subscribers::new(None, Some(room), true);
            subscribers.send(vec![fits]);
            assert!(subscribers.attach(late_subscriber().0), "{name}");
            assert!(subscribers.send(vec![is_too_much]), "{name}: it continues");
            assert!(!subscribers.attach(late_subscriber().0), "{name}");
        }
    }

    #[actix::test]
    async fn subscribers_are_bounded() {
        let mut subscribers = Subscribers::new(None, Some(replay(0, 10)), true);
        let taken = (0..LATE_SUBSCRIBERS_MAX + 3)
            .filter(|_| subscribers.attach(late_subscriber().0))
            .count();
        assert_eq!(taken, LATE_SUBSCRIBERS_MAX);
    }

    #[actix::test]
    async fn a_run_without_a_replay_takes_no_late_subscribers() {
        let mut subscribers = Subscribers::new(Some(late_subscriber().0), None, false);
        assert!(!subscribers.attach(late_subscriber().0));
        assert!(subscribers.send(vec![word("a")]));
    }
}
