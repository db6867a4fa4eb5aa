//! An answer as events: notifications of progress, then the result.

use std::cell::Cell;

use actix_web::HttpResponse;
use futures_util::StreamExt;
use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::requests::Target;
use serde_json::Value;

use super::carry_out;
use super::events::Events;
use super::session::Session;
use crate::api::ApiError;
use crate::api::faces::mcp::progress;

/// Facts that are read at once when the outcome is there before them.
const FACTS_MAX: usize = 1000;

/// The events of one answer.
pub(super) struct Feed {
    token: Value,
    events: Events,
    /// Number of notifications so far: progress has to grow.
    number: Cell<u64>,
}

impl Feed {
    /// Opens the answer to a request with a token.
    pub(super) fn open(session: &Session) -> Result<(Self, HttpResponse), ApiError> {
        let (events, response) = Events::open(session)?;
        let token = session.request.progress_token().cloned().unwrap_or_default();
        Ok((Self { token, events, number: Cell::new(0) }, response))
    }

    /// Carries the request out; the result is the last event.
    pub(super) async fn run(self, mut session: Session) {
        let settings = session.call.settings.clone();
        let working = carry_out(&mut session, Some(&self));
        let body: Value = tokio::select! {
            biased;
            done = working => done.unwrap_or_else(|refusal| refusal.body()),
            never = self.events.keep_open(&settings) => never,
        };
        self.events.send(&body);
        self.events.finish(&settings);
    }

    /// Reports a fact if it is one about a step. A client that is behind misses it.
    fn report(&self, fact: &Recorded) {
        let number = self.number.get() + 1;
        if let Some(notification) = progress(&self.token, number, fact) {
            self.events.send_if_roomy(&notification);
            self.number.set(number);
        }
    }

    /// Waits for an outcome of an execution; with a feed, reports its facts that follow an event.
    pub(super) fn around<T>(
        feed: Option<&Self>,
        session: &Session,
        (target, after): (&Target, u64),
        outcome: impl Future<Output = T>,
    ) -> impl Future<Output = T> {
        // what is waited for is large
        let outcome = Box::pin(outcome);
        async move {
            match feed {
                Some(feed) => feed.during(session, target, after, outcome).await,
                None => outcome.await,
            }
        }
    }

    /// Waits for an outcome of an execution, and reports its facts that follow an event.
    async fn during<T>(
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
