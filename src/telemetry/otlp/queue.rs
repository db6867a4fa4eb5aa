//! What waits to be sent: bounded in number and in bytes, and nobody waits for room in it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prost::Message;
use tokio::sync::Notify;

/// Messages in the order of their coming.
pub(super) struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    came: Notify,
    count_max: usize,
    bytes_max: usize,
    /// How many make a batch.
    enough: usize,
}

struct Waiting<T> {
    messages: VecDeque<(T, usize)>,
    bytes: usize,
}

impl<T: Message> Queue<T> {
    pub(super) fn new(count_max: usize, bytes_max: usize, enough: usize) -> Self {
        let waiting = Mutex::new(Waiting { messages: VecDeque::new(), bytes: 0 });
        // a queue that is full is enough in any case
        let enough = enough.min(count_max);
        Self { waiting, came: Notify::new(), count_max, bytes_max, enough }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn len(&self) -> usize {
        self.lock().messages.len()
    }

    /// Takes a message in and says whether there was room. It is not even written where there is
    /// none. What has nothing to say needs no room.
    pub(super) fn push_with(&self, write: impl FnOnce() -> Option<T>) -> bool {
        if self.len() >= self.count_max {
            return false;
        }
        // Written without the lock: the one who sends need not wait for it.
        let Some(message) = write() else { return true };
        let bytes = message.encoded_len();
        let mut waiting = self.lock();
        if waiting.messages.len() >= self.count_max || waiting.bytes + bytes > self.bytes_max {
            return false;
        }
        waiting.bytes += bytes;
        waiting.messages.push_back((message, bytes));
        let count = waiting.messages.len();
        drop(waiting);
        // the one who sends waits for the first and for the last of a batch, and sleeps between
        if count == 1 || count == self.enough {
            self.came.notify_one();
        }
        true
    }

    /// Takes the oldest out: at most so many, and no more bytes than these, but at least one.
    pub(super) fn take(&self, count: usize, bytes_max: usize) -> Vec<T> {
        let mut waiting = self.lock();
        let mut taken = Vec::with_capacity(count.min(waiting.messages.len()));
        let mut taken_bytes = 0;
        while taken.len() < count {
            let Some((_, bytes)) = waiting.messages.front() else { break };
            if !taken.is_empty() && taken_bytes + bytes > bytes_max {
                break;
            }
            let Some((message, bytes)) = waiting.messages.pop_front() else { break };
            taken_bytes += bytes;
            waiting.bytes -= bytes;
            taken.push(message);
        }
        taken
    }

    /// Waits for the first message, and then until there are enough or no longer than `linger`.
    pub(super) async fn filled(&self, linger: Duration) {
        while self.len() == 0 {
            self.came.notified().await;
        }
        let more = async {
            while self.len() < self.enough {
                self.came.notified().await;
            }
        };
        // Either way there is something to send.
        let _ = tokio::time::timeout(linger, more).await;
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::common::v1::KeyValue;

    use super::*;

    fn of(text: &str) -> Option<KeyValue> {
        Some(KeyValue { key: text.to_owned(), ..KeyValue::default() })
    }

    fn keys(taken: Vec<KeyValue>) -> Vec<String> {
        taken.into_iter().map(|message| message.key).collect()
    }

    #[test]
    fn it_is_bounded_in_number_and_in_bytes() {
        let queue = Queue::new(3, 1_000, 2);
        assert!(["a", "b", "c"].into_iter().all(|text| queue.push_with(|| of(text))));
        let write = || -> Option<KeyValue> { panic!("written without room for it") };
        assert!(!queue.push_with(write));
        assert_eq!(keys(queue.take(2, 1_000)), ["a", "b"]);
        assert!(!queue.push_with(|| of(&"x".repeat(1_000))), "too many bytes");
        assert!(queue.push_with(|| of("d")) && queue.push_with(|| None));
        assert_eq!(keys(queue.take(9, 1_000)), ["c", "d"]);
        assert_eq!((queue.len(), queue.lock().bytes), (0, 0));
    }

    #[test]
    fn a_batch_is_bounded_in_bytes_and_never_empty() {
        let queue = Queue::new(9, 10_000, 9);
        for text in ["x".repeat(500), "y".repeat(50), "z".repeat(50)] {
            assert!(queue.push_with(|| of(&text)));
        }
        for expected in [1, 1, 1, 0] {
            assert_eq!(queue.take(9, 100).len(), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_waits_for_company_but_not_for_ever() {
        let linger = Duration::from_secs(1);
        let queue = Queue::new(9, 1_000, 2);
        let begin = tokio::time::Instant::now();
        assert!(queue.push_with(|| of("a")));
        queue.filled(linger).await;
        assert_eq!(begin.elapsed(), linger);
        assert!(queue.push_with(|| of("b")));
        queue.filled(linger).await;
        assert_eq!(begin.elapsed(), linger);
    }
}
