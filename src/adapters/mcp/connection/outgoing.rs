//! Messages that wait until a server takes them: bounded, and without calls that were given up.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio_util::sync::CancellationToken;

use crate::adapters::mcp::connection::faults::Findings;

/// Maximum number of answers and notifications that wait, far more than a server leaves that reads them.
const COUNT_MAX: usize = 10_000;
/// Bound of the answers and notifications that wait, as a multiple of the largest message.
const MESSAGES_MAX: usize = 4;

/// Messages on their way to a server. Those of requests are bounded by the limit of calls at once.
#[derive(Debug)]
pub(crate) struct Outbox {
    waiting: Mutex<Waiting>,
    bytes_max: usize,
    findings: Findings,
    /// Held by the message that is being written, where they go one after the other.
    turn: Option<Arc<tokio::sync::Mutex<()>>>,
}

#[derive(Debug, Default)]
struct Waiting {
    count: usize,
    bytes: usize,
    /// Fire when their requests are given up.
    requests: HashMap<RequestId, CancellationToken>,
}

/// Place of a message among those that wait, until it is dropped.
struct Place {
    outbox: Arc<Outbox>,
    count: usize,
    bytes: usize,
    request: Option<RequestId>,
    given_up: CancellationToken,
}

impl Outbox {
    /// `is_serial`: messages go one after the other, as to a program.
    pub(crate) fn new(message_bytes_max: usize, findings: Findings, is_serial: bool) -> Arc<Self> {
        Arc::new(Self {
            waiting: Mutex::default(),
            bytes_max: message_bytes_max.saturating_mul(MESSAGES_MAX),
            findings,
            turn: is_serial.then(Arc::default),
        })
    }

    /// Returns a place for a message; `None` if too many wait, which ends the connection.
    fn place(self: &Arc<Self>, message: &ClientJsonRpcMessage) -> Option<Place> {
        let given_up = CancellationToken::new();
        let mut waiting = self.lock();
        let (mut count, mut bytes, mut request) = (0, 0, None);
        match message {
            JsonRpcMessage::Request(sent) => {
                request = Some(sent.id.clone());
                waiting.requests.insert(sent.id.clone(), given_up.clone());
            }
            message => (count, bytes) = (1, size(message)),
        }
        if let Some(id) = cancelled(message)
            && let Some(given_up) = waiting.requests.get(id)
        {
            given_up.cancel();
        }
        waiting.count += count;
        waiting.bytes += bytes;
        let is_full = waiting.count > COUNT_MAX || waiting.bytes > self.bytes_max;
        drop(waiting);
        let place = Place { outbox: Arc::clone(self), count, bytes, request, given_up };
        if is_full {
            self.findings.fault("it does not read its input");
            return None;
        }
        Some(place)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiting = self.outbox.lock();
        waiting.count -= self.count;
        waiting.bytes -= self.bytes;
        if let Some(request) = &self.request {
            waiting.requests.remove(request);
        }
    }
}

/// Returns the request that a message cancels.
fn cancelled(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Notification(sent) => match &sent.notification {
            ClientNotification::CancelledNotification(it) => it.params.request_id.as_ref(),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the size of a message as JSON, in bytes.
fn size(message: &ClientJsonRpcMessage) -> usize {
    let mut size = Size(0);
    // one that cannot be written is not sent either
    let _ = serde_json::to_writer(&mut size, message);
    size.0
}

struct Size(usize);

impl io::Write for Size {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A transport whose waiting messages are bounded.
pub(crate) struct Bounded<T> {
    pub(crate) transport: T,
    pub(crate) outbox: Arc<Outbox>,
}

impl<T: Transport<RoleClient> + 'static> Transport<RoleClient> for Bounded<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        // without a place it is dropped: the connection ends
        let placed = self.outbox.place(&message);
        let sending = placed.map(|place| (place, self.transport.send(message)));
        let turn = self.outbox.turn.clone();
        async move {
            let Some((place, sending)) = sending else { return Ok(()) };
            let _turn = match turn {
                // once begun, a message is written to its end
                Some(turn) => tokio::select! {
                    biased;
                    () = place.given_up.cancelled() => return Ok(()),
                    turn = turn.lock_owned() => Some(turn),
                },
                None => None,
            };
            let sent = sending.await;
            drop(place);
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.transport.receive().await
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.transport.close().await
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::Poll;

    use futures_util::poll;
    use rmcp::transport::async_rw::AsyncRwTransport;
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt as _, DuplexStream, duplex, empty};

    use super::*;

    type Sending = Pin<Box<dyn Future<Output = Result<(), io::Error>> + Send>>;

    /// A program that has not taken a byte yet; its input holds ten.
    fn stalled(
        message_bytes_max: usize,
    ) -> (Bounded<impl Transport<RoleClient, Error = io::Error>>, DuplexStream, Findings) {
        let (input, taken) = duplex(10);
        let findings = Findings::default();
        let outbox = Outbox::new(message_bytes_max, findings.clone(), true);
        let transport = AsyncRwTransport::new_client(empty(), input);
        (Bounded { transport, outbox }, taken, findings)
    }

    async fn send(
        bounded: &mut Bounded<impl Transport<RoleClient, Error = io::Error> + 'static>,
        message: Value,
    ) -> (Sending, Poll<Result<(), io::Error>>) {
        let message = serde_json::from_value(message).unwrap();
        let mut sending: Sending = Box::pin(bounded.send(message));
        let polled = poll!(&mut sending);
        (sending, polled)
    }

    fn answer(id: u64) -> Value {
        json!({ "jsonrpc": "2.0", "id": id, "result": {} })
    }

    fn call(id: u64) -> Value {
        let params = json!({ "name": "a", "arguments": { "pad": "x".repeat(1000) } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    }

    fn cancel(id: u64) -> Value {
        let params = json!({ "requestId": id });
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
    }

    #[tokio::test]
    async fn answers_that_are_not_taken_end_the_connection() {
        let bytes = serde_json::to_vec(&answer(1)).unwrap().len();
        let (mut program, mut taken, findings) = stalled(bytes);
        let mut waiting = Vec::new();
        for id in 1..=4 {
            waiting.push(send(&mut program, answer(id)).await.0);
        }
        assert_eq!(findings.explain("none".to_owned()), "none", "at the bound");
        let (first, _) = (waiting.remove(0), waiting.pop());
        let mut taking = vec![0; bytes + 1];
        let (sent, read) = tokio::join!(first, taken.read_exact(&mut taking));
        assert!(sent.is_ok() && read.is_ok());
        for id in 5..=6 {
            waiting.push(send(&mut program, answer(id)).await.0);
        }
        assert_eq!(findings.explain("none".to_owned()), "none", "what is taken counts no longer");
        assert!(send(&mut program, answer(7)).await.1.is_ready(), "dropped");
        let why = findings.explain("none".to_owned());
        assert_eq!(why, "it does not read its input");
    }

    #[tokio::test]
    async fn calls_that_are_given_up_before_their_turn_are_not_sent() {
        let (mut program, mut taken, findings) = stalled(1000);
        let (first, _) = send(&mut program, call(1)).await;
        let (second, polled) = send(&mut program, call(2)).await;
        assert!(polled.is_pending());
        let (cancel, _) = send(&mut program, cancel(2)).await;
        assert!(second.await.is_ok());
        assert_eq!(program.outbox.lock().requests.len(), 1, "the call is forgotten");
        let mut text = String::new();
        let reading = async {
            drop((first.await, cancel.await, program.close().await));
        };
        let (_, read) = tokio::join!(reading, taken.read_to_string(&mut text));
        assert!(read.is_ok());
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("\"id\":1") && text.contains("cancelled"), "{text}");
        assert_eq!(findings.explain("none".to_owned()), "none");
    }

    #[tokio::test]
    async fn messages_that_wait_are_counted() {
        let (mut program, _taken, findings) = stalled(1 << 20);
        let mut waiting = Vec::new();
        for id in 0..COUNT_MAX as u64 {
            waiting.push(send(&mut program, answer(id)).await.0);
        }
        assert_eq!(findings.explain("none".to_owned()), "none");
        drop(send(&mut program, answer(0)).await);
        assert_ne!(findings.explain("none".to_owned()), "none");
    }
}
