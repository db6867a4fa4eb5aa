//! A runtime in virtual time, over a store in memory.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::domain::ids::{step_id_of, step_name_of};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::clock::Clock as _;
use greenroom_actors::ports::memory::{MemoryCrashMarks, MemoryStore};
use greenroom_actors::ports::store::{Ask, AskFilter, AskState, AskSubject};
use greenroom_actors::requests::{AnswerAsk, AskAccess, AskUpdate, CLAIM_DEFAULT};
use greenroom_actors::testkit::TestClock;
use greenroom_actors::visibility::Visibility;
use greenroom_actors::{Runtime, RuntimePorts};
use serde::Serialize;

use super::answer::{AnswerError, Answerer};
use super::setup::Blueprint;
use crate::app::runs_in_system;
use crate::greenroom::error::Problems;
use crate::handle::{Handle, Host, Run, Start};

/// Begin of the ids of a world, which no program makes by itself.
pub(super) const ID: &str = "test-id-";

/// Open asks that are looked at; more need several answers first.
const ASKS_MAX: usize = 1_000;

/// A server without HTTP, in virtual time and over a store in memory: a process that a test kills
/// and starts again. It lives in [`testing::run`](super::run).
#[derive(Debug)]
pub struct World {
    handle: Handle,
    store: Arc<MemoryStore>,
    crash_marks: Arc<MemoryCrashMarks>,
    clock: Arc<TestClock>,
    blueprint: Blueprint,
}

impl World {
    pub(super) async fn launch(blueprint: Blueprint) -> Result<Self, Problems> {
        if !runs_in_system() {
            let why = "a world needs virtual time: launch it within greenroom::testing::run";
            return Err(Problems(vec![why.to_owned()]));
        }
        let clock = Arc::new(TestClock::starting_at(blueprint.start).naming(ID));
        Self::over(MemoryStore::new(), MemoryCrashMarks::default(), clock, blueprint).await
    }

    async fn over(
        store: MemoryStore,
        crash_marks: MemoryCrashMarks,
        clock: Arc<TestClock>,
        blueprint: Blueprint,
    ) -> Result<Self, Problems> {
        let (store, crash_marks) = (Arc::new(store), Arc::new(crash_marks));
        // nothing listens
        let host = Host::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let ports = RuntimePorts {
            crash_marks: Arc::clone(&crash_marks) as _,
            external_calls: Arc::new(blueprint.outside.clone()),
            host: Some(Arc::new(host.clone())),
            answer_guard: blueprint.answer_guard.clone(),
            ..RuntimePorts::new(Arc::clone(&store) as _, Arc::clone(&clock) as _)
        };
        let Blueprint { registry, limits, .. } = &blueprint;
        let runtime = Runtime::launch(registry.clone(), ports, limits.clone()).await;
        let runtime = runtime.map_err(|error| Problems(vec![error.to_string()]))?;
        let handle = Handle::new(runtime, host);
        Ok(Self { handle, store, crash_marks, clock, blueprint })
    }

    /// Kills the process without a word, and starts another one over the same store. Each [`Run`] of
    /// before belongs to the killed process; [`World::run`] finds it again.
    pub async fn restart(self) -> Result<Self, Problems> {
        // copied first: a killed process records nothing more
        let (store, crash_marks) = (self.store.reopened(), self.crash_marks.reopened());
        self.handle.runtime().clone().kill().await;
        Self::over(store, crash_marks, self.clock, self.blueprint).await
    }

    /// Ends the process, as a kill does. A world that is only dropped ends with
    /// [`testing::run`](super::run), and takes part in its time until then.
    pub async fn end(self) {
        self.handle.runtime().clone().kill().await;
    }

    /// Returns the handle, as code of a program has it. Its address is no address.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Returns the runtime, for what the world has no method for.
    pub fn runtime(&self) -> &Runtime {
        self.handle.runtime()
    }

    /// Starts an execution when awaited, as [`Handle::start`] does.
    pub fn start(&self, workflow: &str, input: &(impl Serialize + ?Sized)) -> Start {
        self.handle.start(workflow, input)
    }

    /// Returns an execution that was started before, also before a restart.
    pub fn run(&self, workflow: &str, execution_id: &str) -> Run {
        self.handle.run(workflow, execution_id)
    }

    /// Lets virtual time pass, and a millisecond: everything has happened that is due until then.
    pub async fn skip(&self, time: Duration) {
        tokio::time::sleep(time).await;
        // time goes further only when nothing else can happen
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    /// Returns the virtual time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns what waits for an answer: paths of steps, and `a call of` tools.
    pub async fn waiting(&self) -> Result<Vec<String>, AnswerError> {
        Ok(self.open_asks().await?.iter().map(name_of).collect())
    }

    /// Answers the open ask of a step, named by its id or its path, in any execution, or of a call of
    /// a tool, by the tool's name. Returns when that is durable. The test may answer everything.
    pub async fn answer(
        &self,
        about: &str,
        data: &(impl Serialize + ?Sized),
    ) -> Result<(), AnswerError> {
        self.answer_for(None, about, data).await
    }

    /// Answers as [`Self::answer`] does, by a user or a service, who has to be among those who are
    /// asked. The step has the id as `resumed_by`.
    ///
    /// ```
    /// use greenroom::prelude::*;
    /// use greenroom::testing::{self, Answerer, AnswerError};
    /// use serde_json::{Value, json};
    ///
    /// let asked = Suspend::always().to(["role:lead"]);
    /// let approve = Step::map("approve", json!("resumed_by.id")).suspend(asked);
    /// let server = Greenroom::new().workflow(Workflow::new("order").step(approve));
    /// testing::run(async {
    ///     let world = server.test().launch().await?;
    ///     let run = world.start("order", &Value::Null).await?;
    ///     run.settled().await?;
    ///     let refused = world.answer_by("ann", "approve", &json!(true)).await;
    ///     assert!(matches!(refused, Err(AnswerError::NotAsked { .. })));
    ///     world.answer_by(Answerer::new("bob").role("lead"), "approve", &json!(true)).await?;
    ///     assert_eq!(run.result().await?, "bob");
    ///     Ok::<_, Box<dyn std::error::Error>>(())
    /// })
    /// # .unwrap();
    /// ```
    pub async fn answer_by(
        &self,
        by: impl Into<Answerer>,
        about: &str,
        data: &(impl Serialize + ?Sized),
    ) -> Result<(), AnswerError> {
        self.answer_for(Some(&by.into()), about, data).await
    }

    async fn answer_for(
        &self,
        by: Option<&Answerer>,
        about: &str,
        data: &(impl Serialize + ?Sized),
    ) -> Result<(), AnswerError> {
        let data = serde_json::to_value(data);
        let data = data.map_err(|error| AnswerError::InvalidData(error.to_string()))?;
        self.answer_ask(self.open_ask(about).await?, data, by).await
    }

    /// Claims an open ask for a user who is about to answer it: for half an hour, others have to wait
    /// ([`AnswerError::Claimed`]).
    pub async fn claim(&self, who: impl Into<Answerer>, about: &str) -> Result<(), AnswerError> {
        let who = who.into();
        let by = who
            .principal()
            .ok_or_else(|| AnswerError::Failed("a claim needs the id of a user".to_owned()))?;
        let ask = self.open_ask(about).await?;
        let access = AskAccess { answerer: Some(who.caller()), ..AskAccess::default() };
        let claim = AskUpdate::Claim { by: by.id, lasts: CLAIM_DEFAULT };
        self.runtime().update_ask(ask, &claim, &access).await?;
        Ok(())
    }

    async fn open_ask(&self, about: &str) -> Result<Ask, AnswerError> {
        let mut open = self.open_asks().await?;
        match open.iter().position(|ask| is_about(ask, about)) {
            Some(at) => Ok(open.swap_remove(at)),
            None => {
                let waiting = open.iter().map(name_of).collect();
                Err(AnswerError::NotWaiting { about: about.to_owned(), waiting })
            }
        }
    }

    pub(super) async fn answer_ask(
        &self,
        ask: Ask,
        data: serde_json::Value,
        by: Option<&Answerer>,
    ) -> Result<(), AnswerError> {
        let access = AskAccess { answerer: by.map(Answerer::caller), ..AskAccess::default() };
        let by = by.and_then(Answerer::principal);
        let answer = AnswerAsk { data, by, access, idempotency: None };
        self.runtime().answer_ask(ask, answer).await?;
        Ok(())
    }

    pub(super) async fn open_asks(&self) -> Result<Vec<Ask>, AnswerError> {
        self.asks(true).await
    }

    /// Returns asks that had no answer before their deadline, the last one first.
    pub(super) async fn expired_asks(&self) -> Result<Vec<Ask>, AnswerError> {
        let mut closed = self.asks(false).await?;
        closed.retain(|ask| ask.state == AskState::Expired);
        Ok(closed)
    }

    async fn asks(&self, is_open: bool) -> Result<Vec<Ask>, AnswerError> {
        let filter = AskFilter { is_open, ..AskFilter::default() };
        let page = self.runtime().inbox(&filter, None, ASKS_MAX).await;
        page.map(|page| page.asks).map_err(|error| AnswerError::Failed(error.to_string()))
    }

    /// Returns the state of an ask of before, if it is known.
    pub(super) async fn state_of(&self, id: &str) -> Option<AskState> {
        let found = self.runtime().find_ask(id, &Visibility::Everything).await;
        found.ok().map(|ask| ask.state)
    }

    /// Returns what would have left the process and is not mocked, in words.
    pub fn refused(&self) -> Vec<String> {
        self.blueprint.outside.refused()
    }

    pub(super) fn store(&self) -> &Arc<MemoryStore> {
        &self.store
    }
}

/// Returns true if an ask is that of a step of this id or path, or of a call of this tool. A failed
/// compensation has the id of its step, alone or with `:compensate`.
pub(super) fn is_about(ask: &Ask, about: &str) -> bool {
    match &ask.subject {
        AskSubject::Step(step) => {
            let path = &step.path;
            [path, step_id_of(path), step_name_of(path)].contains(&about)
        }
        AskSubject::Call(call) => *call.tool_name == *about,
    }
}

/// Returns what an ask is about, for people.
pub(super) fn name_of(ask: &Ask) -> String {
    match &ask.subject {
        AskSubject::Step(step) => step.path.to_string(),
        AskSubject::Call(call) => format!("a call of {}", call.tool_name),
    }
}
