//! A program's own check of answers to executions, while other things happen.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use greenroom_actors::domain::definition::WorkflowDefinition;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::principal::Principal;
use greenroom_actors::ports::answer_guard::{AnswerGuard, GivenAnswer};
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::store::{Ask, AskFilter, AskSubject, Status};
use greenroom_actors::registry::Registry;
use greenroom_actors::requests::{
    AnswerAsk, AskError, IdempotencyKey, ResumeError, ResumeExecution, StartExecution, Unavailable,
};
use greenroom_actors::runtime::{ReplayError, ReplayExecution};
use greenroom_actors::testkit::{TestClock, registry_of, start, target};
use greenroom_actors::{Placement, Runtime, RuntimeLimits, RuntimePorts};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::ask_access::{access, answer, answerer, asking, assign, claim};
use crate::rows::replay_from;
use crate::workflows::{ask, child, resume, sleep, workflow};

/// An answer that is being checked, and the decision of the check.
pub(crate) struct Checking {
    pub(crate) given: GivenAnswer,
    decide: oneshot::Sender<Result<(), String>>,
}

impl Checking {
    pub(crate) fn pass(self) {
        self.decide.send(Ok(())).unwrap();
    }

    pub(crate) fn refuse(self) {
        self.decide.send(Err("no".to_owned())).unwrap();
    }
}

async fn launch(
    registry: Registry,
    guard: impl AnswerGuard + 'static,
    limits: RuntimeLimits,
) -> Runtime {
    let store = Arc::new(MemoryStore::new());
    let ports = RuntimePorts {
        answer_guard: Some(Arc::new(guard)),
        ..RuntimePorts::new(store, Arc::new(TestClock::new()))
    };
    let limits = RuntimeLimits { placement: Placement::Here, ..limits };
    Runtime::launch(registry, ports, limits).await.unwrap()
}

/// Launches a runtime whose checks the test decides.
async fn checked(
    definitions: Vec<WorkflowDefinition>,
    limits: RuntimeLimits,
) -> (Runtime, mpsc::UnboundedReceiver<Checking>) {
    checked_over(registry_of(definitions), limits).await
}

/// Launches a runtime of this registry whose checks the test decides.
pub(crate) async fn checked_over(
    registry: Registry,
    limits: RuntimeLimits,
) -> (Runtime, mpsc::UnboundedReceiver<Checking>) {
    let (asked, checks) = mpsc::unbounded_channel();
    let guard = move |given| {
        let (decide, decision) = oneshot::channel();
        asked.send(Checking { given, decide }).unwrap();
        async move { decision.await.unwrap() }
    };
    (launch(registry, guard, limits).await, checks)
}

/// Starts what asks, for `ann`.
async fn begin(runtime: &Runtime) -> Ask {
    let request = StartExecution { user_id: Some("ann".to_owned()), ..start("w", "e", json!({})) };
    assert_eq!(runtime.execute(request).await.unwrap().status(), Status::Suspended);
    only_open(runtime).await
}

pub(crate) async fn only_open(runtime: &Runtime) -> Ask {
    let filter = AskFilter { is_open: true, ..AskFilter::default() };
    let mut open = runtime.inbox(&filter, None, 10).await.unwrap().asks;
    assert_eq!(open.len(), 1, "{open:?}");
    open.remove(0)
}

/// Runs a request beside the test.
pub(crate) fn beside<T: 'static>(
    runtime: &Runtime,
    request: impl AsyncFnOnce(Runtime) -> T + 'static,
) -> JoinHandle<T> {
    actix::spawn(request(runtime.clone()))
}

fn approved() -> Value {
    json!({ "approved": 1 })
}

async fn resumed(runtime: Runtime, request: ResumeExecution) -> Result<Status, ResumeError> {
    runtime.resume(&target("w", "e"), request).await.map(|outcome| outcome.status())
}

#[actix::test]
async fn a_check_knows_what_was_asked_however_the_answer_comes() {
    tokio::time::pause();
    let family = || {
        let inner = workflow("inner", vec![ask("a")]);
        vec![inner, workflow("w", vec![child("c", "inner")])]
    };
    let alone = || vec![workflow("w", vec![ask("a")])];
    let lea = || Some(Principal::verified("lea"));
    for (definitions, workflow, by_inbox) in
        [(alone(), "w", false), (alone(), "w", true), (family(), "inner", false)]
    {
        let (runtime, mut checks) = checked(definitions, RuntimeLimits::default()).await;
        let open = begin(&runtime).await;
        let seen = open.clone();
        let answering = beside(&runtime, async move |runtime| match by_inbox {
            true => {
                let given = AnswerAsk { by: lea(), ..answer(access("lea")) };
                runtime.answer_ask(seen, given).await.map(drop).map_err(|why| why.to_string())
            }
            false => {
                let request = ResumeExecution { by: lea(), ..resume(approved()) };
                resumed(runtime, request).await.map(drop).map_err(|why| why.to_string())
            }
        });
        let checking = checks.recv().await.unwrap();
        let GivenAnswer { by, data, ask, workflow_id, execution_id, step, .. } =
            checking.given.clone();
        assert_eq!((by, &*data), (lea(), &approved()));
        assert_eq!(ask.as_ref(), Some(&open));
        assert_eq!((workflow_id.as_deref(), step.as_deref()), (Some(workflow), Some("a")));
        assert_eq!(execution_id == Some(ExecutionId::trusted("e")), workflow == "w");
        assert!(!format!("{:?}", checking.given).contains("approved"), "data is private");
        checking.pass();
        answering.await.unwrap().unwrap();
    }
}

#[actix::test]
async fn what_is_refused_anyway_is_not_checked() {
    tokio::time::pause();
    let definitions = vec![workflow("w", vec![asking("a", &["user:lea"])])];
    let (runtime, mut checks) = checked(definitions, RuntimeLimits::default()).await;
    let open = begin(&runtime).await;
    let invalid = resumed(runtime.clone(), resume(json!({}))).await.unwrap_err();
    assert!(matches!(invalid, ResumeError::InvalidData(_)), "{invalid:?}");
    let bob = ResumeExecution { answerer: Some(answerer(Some("bob"), &[])), ..resume(approved()) };
    assert_eq!(resumed(runtime.clone(), bob).await, Err(ResumeError::NotAssigned));
    let unknown = ResumeExecution { step_id: Some("b".to_owned()), ..resume(approved()) };
    let refused = resumed(runtime.clone(), unknown).await;
    assert_eq!(refused, Err(ResumeError::UnknownStep("b".to_owned())));
    let refused = runtime.answer_ask(open, answer(access("bob"))).await.unwrap_err();
    assert!(matches!(refused, AskError::NotAssigned { .. }), "{refused:?}");
    assert!(checks.try_recv().is_err(), "none of them was checked");
}

#[actix::test]
async fn an_answer_that_passed_is_none_to_the_next_question() {
    tokio::time::pause();
    let definitions = vec![workflow("w", vec![ask("a"), ask("b")])];
    let (runtime, mut checks) = checked(definitions, RuntimeLimits::default()).await;
    begin(&runtime).await;
    let send = || beside(&runtime, async |runtime| resumed(runtime, resume(approved())).await);
    let (slow, fast) = (send(), send());
    let (first, second) = (checks.recv().await.unwrap(), checks.recv().await.unwrap());
    second.pass();
    assert_eq!(fast.await.unwrap(), Ok(Status::Suspended));
    first.pass();
    let late = slow.await.unwrap().unwrap_err();
    assert!(matches!(late, ResumeError::SuspensionPassed { .. }), "{late:?}");
    let AskSubject::Step(waits) = only_open(&runtime).await.subject else { panic!("a step") };
    assert_eq!(&*waits.path, "b");
}

#[actix::test]
async fn who_may_answer_is_looked_at_again_after_the_check() {
    tokio::time::pause();
    type IsExpected = fn(&AskError) -> bool;
    let rows: [(_, IsExpected); 2] = [
        (claim("bob", 600), |why| matches!(why, AskError::Claimed { .. })),
        (assign(&["user:bob"]), |why| matches!(why, AskError::NotAssigned { .. })),
    ];
    for (update, is_expected) in rows {
        let definitions = vec![workflow("w", vec![asking("a", &["user:lea", "user:bob"])])];
        let (runtime, mut checks) = checked(definitions, RuntimeLimits::default()).await;
        let open = begin(&runtime).await;
        let seen = open.clone();
        let in_inbox = beside(&runtime, async |runtime| {
            runtime.answer_ask(seen, answer(access("lea"))).await.map(drop)
        });
        let checking = checks.recv().await.unwrap();
        runtime.update_ask(open, &update, &access("bob")).await.unwrap();
        checking.pass();
        let refused = in_inbox.await.unwrap().unwrap_err();
        assert!(is_expected(&refused), "{refused:?}");
        only_open(&runtime).await;
    }
    let asks = || vec![asking("a", &["user:lea"])];
    let of_child = vec![workflow("w", vec![child("c", "part")]), workflow("part", asks())];
    for definitions in [vec![workflow("w", asks())], of_child] {
        let (runtime, mut checks) = checked(definitions, RuntimeLimits::default()).await;
        let open = begin(&runtime).await;
        let lea = Some(answerer(Some("lea"), &[]));
        let lea = ResumeExecution { answerer: lea, ..resume(approved()) };
        let by_resume = beside(&runtime, async |runtime| resumed(runtime, lea).await);
        let checking = checks.recv().await.unwrap();
        runtime.update_ask(open, &assign(&["user:bob"]), &access("lea")).await.unwrap();
        checking.pass();
        assert_eq!(by_resume.await.unwrap(), Err(ResumeError::NotAssigned));
        only_open(&runtime).await;
    }
}

#[actix::test]
async fn a_repeated_request_gets_the_outcome_of_the_first_also_during_its_check() {
    tokio::time::pause();
    let definitions = || vec![workflow("w", vec![ask("a")])];
    let key = || Some(IdempotencyKey { scope: "k".into(), body_hash: "b".into() });
    let (runtime, mut checks) = checked(definitions(), RuntimeLimits::default()).await;
    begin(&runtime).await;
    let send = || {
        let request = ResumeExecution { idempotency: key(), ..resume(approved()) };
        beside(&runtime, async |runtime| resumed(runtime, request).await)
    };
    let (one, other) = (send(), send());
    let (first, second) = (checks.recv().await.unwrap(), checks.recv().await.unwrap());
    first.pass();
    assert_eq!(one.await.unwrap(), Ok(Status::Completed));
    second.refuse();
    assert_eq!(other.await.unwrap(), Ok(Status::Completed));

    let (runtime, mut checks) = checked(definitions(), RuntimeLimits::default()).await;
    let open = begin(&runtime).await;
    let send = || {
        let (open, idempotency) = (open.clone(), key());
        beside(&runtime, async move |runtime| {
            let given = AnswerAsk { idempotency, ..answer(access("lea")) };
            runtime.answer_ask(open, given).await.map(|detail| detail.answer.is_some())
        })
    };
    let (one, other) = (send(), send());
    let (first, second) = (checks.recv().await.unwrap(), checks.recv().await.unwrap());
    first.pass();
    assert_eq!(one.await.unwrap(), Ok(true));
    second.refuse();
    assert_eq!(other.await.unwrap(), Ok(true));
}

#[actix::test]
async fn only_so_many_answers_are_checked_at_once() {
    tokio::time::pause();
    let limits = RuntimeLimits { answer_checks_max: 1, ..RuntimeLimits::default() };
    let (runtime, mut checks) = checked(vec![workflow("w", vec![ask("a")])], limits).await;
    begin(&runtime).await;
    let send = || beside(&runtime, async |runtime| resumed(runtime, resume(approved())).await);
    let one = send();
    let checking = checks.recv().await.unwrap();
    let busy = ResumeError::Unavailable(Unavailable::Busy { execution: None });
    assert_eq!(send().await.unwrap(), Err(busy));
    checking.refuse();
    assert_eq!(one.await.unwrap(), Err(ResumeError::Refused("no".to_owned())));
    let again = send();
    checks.recv().await.unwrap().pass();
    assert_eq!(again.await.unwrap(), Ok(Status::Completed));
}

#[actix::test]
async fn a_check_that_panics_or_hangs_refuses() {
    tokio::time::pause();
    type Check = fn(GivenAnswer) -> BoxFuture<'static, Result<(), String>>;
    let panicked = "it could not be checked; the log of the server has the reason";
    let rows: [(Check, Option<&str>); 5] = [
        (|_| async { Ok(()) }.boxed(), None),
        (|_| async { Err("not on Sundays".to_owned()) }.boxed(), Some("not on Sundays")),
        (
            |_| std::future::pending().boxed(),
            Some("it could not be checked within 10 s; try again"),
        ),
        (|_| async { panic!("later") }.boxed(), Some(panicked)),
        (|_| panic!("at once"), Some(panicked)),
    ];
    for (check, refusal) in rows {
        let definitions = vec![workflow("w", vec![ask("a")])];
        let runtime = launch(registry_of(definitions), check, RuntimeLimits::default()).await;
        begin(&runtime).await;
        let answered = resumed(runtime, resume(approved())).await;
        let refused = refusal.map(|why| ResumeError::Refused(why.to_owned()));
        assert_eq!(answered.err(), refused);
    }
}

#[actix::test]
async fn the_end_of_a_pause_is_checked() {
    tokio::time::pause();
    let definitions = vec![workflow("w", vec![sleep("a", 100)])];
    let (runtime, mut checks) = checked(definitions, RuntimeLimits::default()).await;
    runtime.begin(start("w", "e", json!({}))).await.unwrap();
    runtime.suspend(&target("w", "e"), None, None).await.unwrap();
    let resuming = beside(&runtime, async |runtime| resumed(runtime, resume(json!(1))).await);
    let checking = checks.recv().await.unwrap();
    let GivenAnswer { ask, execution_id, step, .. } = checking.given.clone();
    assert_eq!((ask, step), (None, None));
    assert_eq!(execution_id, Some(ExecutionId::trusted("e")));
    checking.pass();
    assert_eq!(resuming.await.unwrap(), Ok(Status::Completed));
}

#[actix::test]
async fn the_answer_of_a_replay_is_checked_and_counts_only_from_those_who_are_asked() {
    tokio::time::pause();
    let definitions = vec![workflow("w", vec![asking("a", &["role:manager", "!self"])])];
    let (runtime, mut checks) = checked(definitions, RuntimeLimits::default()).await;
    begin(&runtime).await;
    let send = |user: &str, roles: &[&str]| {
        let by = Some(Principal::verified(user));
        let answerer = Some(answerer(Some(user), roles));
        let resume_data = Some(approved());
        let request = ReplayExecution { resume_data, by, answerer, ..replay_from("a") };
        beside(&runtime, async |runtime| {
            runtime.replay(&target("w", "e"), request).await.map(|it| it.new.status())
        })
    };
    let refused = send("lea", &["manager"]);
    let checking = checks.recv().await.unwrap();
    let GivenAnswer { by, data, ask, workflow_id, execution_id, step, .. } = checking.given.clone();
    assert_eq!((by, &*data, ask), (Some(Principal::verified("lea")), &approved(), None));
    assert_eq!((workflow_id.as_deref(), step.as_deref()), (Some("w"), Some("a")));
    assert!(execution_id.is_some_and(|id| id != ExecutionId::trusted("e")), "the new one");
    checking.refuse();
    assert_eq!(refused.await.unwrap(), Err(ReplayError::Refused("no".to_owned())));
    for (user, roles, status) in [
        ("lea", &["manager"][..], Status::Completed),
        ("ann", &["manager"], Status::Suspended),
        ("bob", &[], Status::Suspended),
    ] {
        let replaying = send(user, roles);
        checks.recv().await.unwrap().pass();
        assert_eq!(replaying.await.unwrap(), Ok(status), "{user}");
    }
    // a name that no token proves
    let (by, answerer) = (Some(Principal::claimed("lea")), Some(answerer(None, &["manager"])));
    let claims =
        ReplayExecution { resume_data: Some(approved()), by, answerer, ..replay_from("a") };
    let replaying = beside(&runtime, async |runtime| {
        runtime.replay(&target("w", "e"), claims).await.map(|it| it.new.status())
    });
    checks.recv().await.unwrap().pass();
    assert_eq!(replaying.await.unwrap(), Ok(Status::Suspended));
}
