//! `subscriptions/listen`: a stream of what a client wants to notice. Several changes in a row are
//! one notification, and a client that is behind gets the newest of them.

use std::collections::BTreeMap;
use std::time::Duration;

use actix_web::HttpResponse;
use futures_util::stream::{LocalBoxStream, SelectAll, StreamExt as _, select_all, unfold};
use greenroom_actors::domain::fact::Suspension;
use greenroom_actors::requests::ExecutionState;
use serde_json::Value;
use tokio::time::sleep;

use super::events::Events;
use super::session::Session;
use super::{refused, takes_events};
use crate::api::catalogue::RouteName;
use crate::api::faces::mcp::{
    Listening, Refusal, Run, Task, Tool, answered, listened, resource_of, resource_updated,
    task_changed, task_now, tools_changed,
};
use crate::api::{ApiError, executions};

/// Shortest time between two notifications about the same.
const PAUSE: Duration = Duration::from_millis(200);

/// An execution that the client watches.
struct Watched {
    run: Run,
    subject: Subject,
    /// Number of the last event that was noticed.
    seen: u64,
    /// Notification before.
    shown: Option<Value>,
    has_ended: bool,
}

/// Name under which a client watches an execution.
enum Subject {
    Task(String),
    Resource(String),
}

/// Carries `subscriptions/listen` out.
pub(super) async fn listen(mut session: Session) -> HttpResponse {
    let (listening, watched) = match session.watched().await {
        Ok(watched) => watched,
        Err(refusal) => return refused(&refusal),
    };
    if !takes_events(session.call.request.headers()) {
        return refused(&session.request.invalid("the client has to accept text/event-stream"));
    }
    match Events::open(&session) {
        Ok((events, response)) => {
            events.send(&listening.acknowledged(&session.request.id));
            actix_web::rt::spawn(run(session, events, listening.tools, watched));
            response
        }
        Err(refusal) => refused(&session.request.refused(&refusal)),
    }
}

async fn run(session: Session, events: Events, tools: bool, watched: Vec<Watched>) {
    let (settings, shutdown) = (&session.call.settings, &session.call.settings.shutdown);
    let mut changes: SelectAll<LocalBoxStream<'_, Value>> =
        select_all(watched.into_iter().map(|one| session.changes_of(one).boxed_local()));
    if tools {
        changes.push(session.changes_of_tools().boxed_local());
    }
    let sending = async {
        loop {
            events.room().await;
            match changes.next().await {
                Some(change) => events.send(&change),
                // the client decides when to stop
                None => std::future::pending().await,
            }
        }
    };
    let expired = async {
        match session.call.token_left() {
            Some(left) => sleep(left).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = events.closed() => return,
        () = shutdown.fired() => {}
        // the client listens again with a new token
        () = expired => {}
        () = sending => {}
        never = events.keep_open(settings) => never,
    }
    events.send(&answered(&session.request, listened(&session.request)));
    events.finish(settings);
}

impl Session {
    /// Takes what the client wants to notice, and leaves out what it does not see: that is like what
    /// never was.
    async fn watched(&mut self) -> Result<(Listening, Vec<Watched>), Refusal> {
        let mut listening = Listening::take(&mut self.request, self.server.subscriptions_max)?;
        if !listening.tasks.is_empty() && !self.request.abilities().follows_tasks {
            return Err(self.without_tasks());
        }
        let mut all = Vec::new();
        for id in std::mem::take(&mut listening.tasks) {
            let run = self.tokens().read_task_id(&id);
            if let Some(one) = self.watched_run(run, Subject::Task(id.clone())).await? {
                listening.tasks.push(id);
                all.push(one);
            }
        }
        let offer = &self.server.offer;
        for uri in std::mem::take(&mut listening.resources) {
            let run = resource_of(&uri)
                .filter(|run| self.server.has_resources && offer.workflows.has(&run.workflow));
            if let Some(one) = self.watched_run(run, Subject::Resource(uri.clone())).await? {
                listening.resources.push(uri);
                all.push(one);
            }
        }
        Ok((listening, all))
    }

    async fn watched_run(
        &self,
        run: Option<Run>,
        subject: Subject,
    ) -> Result<Option<Watched>, Refusal> {
        let Some(run) = run.filter(|run| self.may(RouteName::DescribeExecution, run)) else {
            return Ok(None);
        };
        match executions::describe(&self.call.runtime, &self.target(&run)).await {
            Ok(state) => Ok(Some(Watched {
                run,
                seen: match &subject {
                    // its status may have changed since the client has seen it
                    Subject::Task(_) => 0,
                    Subject::Resource(_) => state.last_seq,
                },
                subject,
                shown: None,
                has_ended: false,
            })),
            Err(ApiError::ExecutionNotFound(_)) => Ok(None),
            Err(refusal) => Err(self.request.refused(&refusal)),
        }
    }

    /// Returns the notifications about one execution, until its end.
    fn changes_of(&self, watched: Watched) -> impl futures_util::Stream<Item = Value> {
        unfold(watched, move |mut watched| async move {
            let change = self.next_change(&mut watched).await?;
            Some((change, watched))
        })
    }

    async fn next_change(&self, watched: &mut Watched) -> Option<Value> {
        loop {
            if watched.has_ended {
                return None;
            }
            if watched.shown.is_some() {
                sleep(PAUSE).await;
            }
            let seen = watched.seen;
            let target = self.target(&watched.run);
            let changed = self.call.runtime.state_when(&target, |state| state.last_seq > seen);
            let state = match changed.await {
                Ok(state) => state,
                Err(error) => {
                    log::debug!(
                        "execution {} is no longer followed: {error}",
                        watched.run.execution
                    );
                    return None;
                }
            };
            let is_news = state.last_seq > seen;
            watched.has_ended = state.status.is_terminal();
            watched.seen = state.last_seq;
            let change = self.change(watched, &state).await;
            let is_other = match &watched.subject {
                Subject::Task(_) => watched.shown.as_ref() != Some(&change),
                Subject::Resource(_) => is_news,
            };
            if is_other {
                watched.shown = Some(change.clone());
                return Some(change);
            }
        }
    }

    async fn change(&self, watched: &Watched, state: &ExecutionState) -> Value {
        let id = match &watched.subject {
            Subject::Resource(uri) => return resource_updated(&self.request.id, uri),
            Subject::Task(id) => id,
        };
        let waiting: &[Suspension] = &state.suspensions;
        let questions = self.open_questions(&watched.run, waiting).await;
        let mut task = task_now(&Task { id, state, questions: &questions }, None);
        // it changes with every fact
        task.shift_remove("lastUpdatedAt");
        task_changed(&self.request.id, task)
    }

    /// Returns a notification each time the list of tools has changed.
    fn changes_of_tools(&self) -> impl futures_util::Stream<Item = Value> {
        let registry = self.call.runtime.watch_registry();
        let state = (registry, described(&self.tools()));
        unfold(state, move |(mut registry, mut before)| async move {
            loop {
                registry.changed().await.ok()?;
                let now = described(&self.tools());
                if now != before {
                    before = now;
                    return Some((tools_changed(&self.request.id), (registry, before)));
                }
            }
        })
    }
}

fn described(tools: &BTreeMap<String, Tool>) -> Vec<Value> {
    tools.iter().map(|(name, tool)| tool.describe(name)).collect()
}
