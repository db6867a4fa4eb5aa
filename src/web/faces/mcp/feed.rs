//! An answer as events: notifications of progress, then the result.

use std::cell::Cell;
use std::time::Duration;

use actix_web::web::Bytes;
use actix_web::{Error, HttpResponse};
use futures_util::StreamExt;
use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::observe::disconnect::Disconnect;
use greenroom_actors::requests::Target;
use serde_json::Value;
use tokio::time::sleep;

use super::carry_out;
use super::session::Session;
use crate::api::ApiError;
use crate::api::faces::mcp::progress;
use crate::telemetry::metrics::RequestMeter;
use crate::web::peer::Peer;
use crate::web::pending_stream::head_of_stream;
use crate::web::subscriber_queue::{Delivery, KEEP_ALIVE, SubscriberQueue, Weight};

/// Facts that are read at once when the outcome is there before them.
const FACTS_MAX: usize = 1000;

/// Weight of comments, which are not limited.
const NO_EVENT: Weight = Weight { events: 0, bytes: 0 };

/// The events of one answer.
pub(super) struct Feed {
    token: Value,
    queue: SubscriberQueue<Bytes>,
    disconnect: Disconnect,
    /// Number of notifications so far: progress has to grow.
    number: Cell<u64>,
}

impl Feed {
    /// Opens the answer to a request with a token.
    pub(super) fn open(session: &Session) -> Result<(Self, HttpResponse), ApiError> {
        let (request, settings) = (&session.call.request, &session.call.settings);
        let admitted = settings.admit_stream(request)?;
        Peer::bound_send_buffer(request);
        let queue = settings.subscriber_queue();
        let counted = settings.requests().map(RequestMeter::stream);
        let body = queue.receiver(move || drop((counted, admitted)));
        let bytes = body.map(|delivery| match delivery {
            Delivery::Item(bytes) => Ok::<_, Error>(bytes),
            Delivery::Missed(count) => Ok(Bytes::from(format!(": dropped {count}\n\n"))),
        });
        let response = head_of_stream().content_type("text/event-stream").streaming(bytes);
        let token = session.request.progress_token().cloned().unwrap_or_default();
        let disconnect = Peer::disconnect_of(request);
        Ok((Self { token, queue, disconnect, number: Cell::new(0) }, response))
    }

    /// Carries the request out; the result is the last event.
    pub(super) async fn run(self, mut session: Session) {
        let settings = session.call.settings.clone();
        let working = carry_out(&mut session, Some(&self));
        let beating = async {
            loop {
                sleep(settings.config.heartbeat).await;
                self.beat(settings.config.subscriber_stall);
            }
        };
        let body: Value = tokio::select! {
            biased;
            done = working => done.unwrap_or_else(|refusal| refusal.body()),
            never = beating => never,
        };
        let bytes = event(&body);
        let weight = Weight { events: 1, bytes: bytes.len() };
        self.queue.push_anyway(bytes, weight);
        self.queue.finish();
    }

    /// Shows proxies that the answer continues, and leaves a client that does not read.
    fn beat(&self, stall_max: Duration) {
        if self.queue.stalled_for().is_some_and(|stall| stall >= stall_max) {
            (self.disconnect)();
        } else if self.queue.is_empty() {
            self.queue.push(Bytes::from_static(KEEP_ALIVE), NO_EVENT);
        }
    }

    /// Reports a fact if it is one about a step. A client that is behind misses it.
    fn report(&self, fact: &Recorded) {
        let number = self.number.get() + 1;
        if let Some(notification) = progress(&self.token, number, fact) {
            let bytes = event(&notification);
            let weight = Weight { events: 1, bytes: bytes.len() };
            self.queue.push_if_roomy(bytes, weight);
            self.number.set(number);
        }
    }

    /// Waits for an outcome of an execution, and reports its facts that follow an event.
    pub(super) async fn during<T>(
        &self,
        session: &Session,
        target: &Target,
        after: u64,
        outcome: impl Future<Output = T>,
    ) -> T {
        let runtime = &session.call.runtime;
        let mut outcome = std::pin::pin!(outcome);
        let mut facts = std::pin::pin!(runtime.follow(target.clone(), after));
        let (mut seen, mut has_more) = (after, true);
        loop {
            tokio::select! {
                biased;
                fact = facts.next(), if has_more => match fact {
                    Some(Ok(fact)) => {
                        seen = fact.next_seq().saturating_sub(1);
                        self.report(&fact);
                    }
                    Some(Err(_)) | None => has_more = false,
                },
                done = &mut outcome => {
                    // facts are read after their bell, so that the last ones may be missing
                    if let Ok(page) = runtime.events(target, seen, FACTS_MAX).await {
                        let is_new = |fact: &&Recorded| fact.next_seq() > seen + 1;
                        page.facts.iter().filter(is_new).for_each(|fact| self.report(fact));
                    }
                    return done;
                }
            }
        }
    }
}

fn event(message: &Value) -> Bytes {
    Bytes::from(format!("data: {message}\n\n"))
}
