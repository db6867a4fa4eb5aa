//! Queue of encoded messages, limited in number and bytes. Senders never wait.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prost::Message;
use tokio::sync::Notify;

/// Queue of messages, first in, first out.
pub(super) struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    filled: Notify,
    count_max: usize,
    bytes_max: usize,
    /// Number of messages of a full batch.
    batch: usize,
}

struct Waiting<T> {
    messages: VecDeque<(T, usize)>,
    bytes: usize,
}

impl<T: Message> Queue<T> {
    pub(super) fn new(count_max: usize, bytes_max: usize, batch: usize) -> Self {
        let waiting = Mutex::new(Waiting { messages: VecDeque::new(), bytes: 0 });
        // a full queue is a full batch
        let batch = batch.min(count_max);
        Self { waiting, filled: Notify::new(), count_max, bytes_max, batch }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn len(&self) -> usize {
        self.lock().messages.len()
    }

    /// Adds the message that `encode` returns, if any. Returns false if the queue is full; then
    /// `encode` is usually not called.
    pub(super) fn push_with(&self, encode: impl FnOnce() -> Option<T>) -> bool {
        if self.len() >= self.count_max {
            return false;
        }
        // encoded without the lock, so that the sending thread does not wait for it
        let Some(message) = encode() else { return true };
        let bytes = message.encoded_len();
        let mut waiting = self.lock();
        if waiting.messages.len() >= self.count_max || waiting.bytes + bytes > self.bytes_max {
            return false;
        }
        waiting.bytes += bytes;
        waiting.messages.push_back((message, bytes));
        let count = waiting.messages.len();
        drop(waiting);
        // `wait_for_batch` waits for the first and for the last message of a batch
        if count == 1 || count == self.batch {
            self.filled.notify_one();
        }
        true
    }

    /// Removes the oldest messages: at most `count` and `bytes_max`, but at least one.
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

    /// Waits for the first message, and then until a batch is full or for `linger`.
    pub(super) async fn wait_for_batch(&self, linger: Duration) {
        while self.len() == 0 {
            self.filled.notified().await;
        }
        let more = async {
            while self.len() < self.batch {
                self.filled.notified().await;
            }
        };
        // there are messages to send in both cases
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
    fn the_queue_is_limited_in_number_and_bytes() {
        let queue = Queue::new(3, 1_000, 2);
        assert!(["a", "b", "c"].into_iter().all(|text| queue.push_with(|| of(text))));
        let encode = || -> Option<KeyValue> { panic!("encoded although the queue is full") };
        assert!(!queue.push_with(encode));
        assert_eq!(keys(queue.take(2, 1_000)), ["a", "b"]);
        assert!(!queue.push_with(|| of(&"x".repeat(1_000))), "too many bytes");
        assert!(queue.push_with(|| of("d")) && queue.push_with(|| None));
        assert_eq!(keys(queue.take(9, 1_000)), ["c", "d"]);
        assert_eq!((queue.len(), queue.lock().bytes), (0, 0));
    }

    #[test]
    fn a_batch_is_limited_in_bytes_and_has_at_least_one_message() {
        let queue = Queue::new(9, 10_000, 9);
        for text in ["x".repeat(500), "y".repeat(50), "z".repeat(50)] {
            assert!(queue.push_with(|| of(&text)));
        }
        for expected in [1, 1, 1, 0] {
            assert_eq!(queue.take(9, 100).len(), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_waits_until_it_is_full_or_old_enough() {
        let linger = Duration::from_secs(1);
        let queue = Queue::new(9, 1_000, 2);
        let begin = tokio::time::Instant::now();
        assert!(queue.push_with(|| of("a")));
        queue.wait_for_batch(linger).await;
        assert_eq!(begin.elapsed(), linger);
        assert!(queue.push_with(|| of("b")));
        queue.wait_for_batch(linger).await;
        assert_eq!(begin.elapsed(), linger);
    }
}
