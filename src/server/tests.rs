//! Servers inside of programs that run on tokio.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use greenroom_actors::domain::status::Status;
use greenroom_actors::requests::{DescribeError, ResumeError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::api::caller::Caller;
use crate::auth::User;
use crate::builder::{Step, Suspend, Workflow, tool};
use crate::step::{StepContext, StepError};
use crate::tool::ToolContext;
use crate::{Greenroom, Handle, Run, RunError, ServeError, Server, ServerContext, StartError};

#[derive(Debug, Serialize)]
struct Order<'a> {
    item: &'a str,
    cents: u32,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Shipped {
    parcel: String,
}

fn shop() -> Greenroom {
    let approve = Step::map("approve", json!("input.cents"))
        .suspend(Suspend::when("input.cents > 100"))
        .resume_schema(json!({ "type": "boolean" }));
    let order = Workflow::new("order")
        .input_schema(json!({ "type": "object", "required": ["item"] }))
        .step(approve)
        .step(Step::run("ship", "ship"));
    Greenroom::new()
        .configure(|config| {
            config.server.port = 0;
            config.store.url = "memory:".parse().unwrap();
        })
        .function("ship", |step| async move {
            let item = step.input["item"].as_str().ok_or("no item")?;
            if item == "rock" {
                return Err("too heavy".into());
            }
            Ok(json!({ "parcel": format!("a {item}") }).into())
        })
        .workflow(order)
}

/// Starts an execution that waits for approval.
async fn waiting(server: &Server, id: &str) -> Run {
    let order = Order { item: "sofa", cents: 101 };
    let run = server.handle().start("order", &order).execution_id(id).await.unwrap();
    assert_eq!(run.settled().await.unwrap().status, Status::Suspended);
    run
}

#[tokio::test]
async fn a_program_starts_executions_and_has_their_results() {
    let server = shop().start().await.unwrap();
    let handle = server.handle();
    assert_ne!(handle.address().port(), 0);
    let run = handle.start("order", &Order { item: "lamp", cents: 5 }).user("ann").await.unwrap();
    assert_eq!(run.state().await.unwrap().header.user_id.as_deref(), Some("ann"));
    let shipped = run.clone().returning::<Shipped>().result().await.unwrap();
    assert_eq!(shipped, Shipped { parcel: "a lamp".to_owned() });
    let wrong = run.clone().returning::<u32>().result().await.unwrap_err();
    assert!(wrong.to_string().starts_with("the result has another type: invalid type"), "{wrong}");
    let heavy = handle.start("order", &json!({ "item": "rock", "cents": 1 })).await.unwrap();
    let failed = heavy.result().await.unwrap_err();
    let RunError::Failed(failure) = &failed else { panic!("{failed:?}") };
    assert_eq!(
        (failed.to_string().as_str(), failure.step_id.as_deref()),
        ("too heavy", Some("ship"))
    );
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_result_is_waited_for_across_an_approval() {
    let server = shop().start().await.unwrap();
    let run = waiting(&server, "sofa").await;
    let (events, result) = (run.events(0), run.clone());
    let events = tokio::spawn(events.map(Result::unwrap).collect::<Vec<_>>());
    let result = tokio::spawn(async move { result.result().await });
    let refused = run.resume("yes").await.unwrap_err();
    assert!(matches!(refused, ResumeError::InvalidData(_)), "{refused}");
    let refused = run.resume_step("ship", &true).await.unwrap_err();
    assert_eq!(refused, ResumeError::StepNotSuspended("ship".to_owned()));
    run.resume_step("approve", &true).await.unwrap();
    assert_eq!(result.await.unwrap().unwrap(), json!({ "parcel": "a sofa" }));
    let events = events.await.unwrap();
    let numbers: Vec<_> = events.iter().map(|event| event.sequence).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    let kinds: Vec<_> = events.iter().map(|event| event.kind()).collect();
    assert_eq!((kinds[0], *kinds.last().unwrap()), ("workflow-start", "workflow-result"));
    let last: Vec<_> = run.events(numbers.len() as u64 - 1).collect().await;
    assert_eq!(last, [Ok(events.last().unwrap().clone())]);
}

#[tokio::test]
async fn a_program_starts_and_resumes_for_the_callers_of_its_routes() {
    let review = Step::map("review", json!("[context.user.name, resumed_by.id]"));
    let rule = Suspend::always().to(["role:lead", "!self"]);
    let reviewed = Workflow::new("reviewed").step(review.suspend(rule));
    let server = shop().workflow(reviewed).start().await.unwrap();
    let caller = |id: &str, role: &str| {
        let profile = json!({ "id": id, "name": id.to_uppercase(), "roles": [role] });
        let user = User::new(profile.as_object().cloned().unwrap()).unwrap();
        Caller::checked(Some(Arc::new(user)), None)
    };
    let (ann, ben, eve) = (caller("ann", "lead"), caller("ben", "lead"), caller("eve", "staff"));

    let start = server.handle().start("reviewed", &Value::Null).user("ben").caller(&ann);
    let claimed = json!({ "id": "ben", "name": "BEN" });
    let run = start.user("ben").context("user", claimed).await.unwrap();
    let settled = run.settled().await.unwrap();
    assert_eq!(settled.header.user_id.as_deref(), Some("ann"), "the token counts, not the name");
    let nobody = Caller::checked(None, None);
    for other in [&ann, &eve, &nobody, &Caller::unchecked()] {
        let refused = run.resume(&json!({})).caller(other).await.unwrap_err();
        assert_eq!(refused, ResumeError::NotAssigned, "{other:?}");
    }
    let asked = settled.suspensions[0].id.clone().unwrap();
    let resume = || run.resume_step("review", &json!({})).caller(&ben);
    let passed = resume().suspension("another").await.unwrap_err();
    assert!(matches!(passed, ResumeError::SuspensionPassed { .. }), "{passed:?}");
    let outcome = resume().suspension(&*asked).await.unwrap();
    assert_eq!(outcome.status(), Status::Completed);
    assert_eq!(run.result().await.unwrap(), json!(["ANN", "ben"]));
    server.stop().await.unwrap();
}

#[tokio::test]
async fn executions_are_stopped_by_the_program() {
    let server = shop().start().await.unwrap();
    let run = waiting(&server, "one").await;
    run.cancel(Some("sold out")).await.unwrap();
    let cancelled = run.result().await.unwrap_err();
    assert_eq!(cancelled, RunError::Cancelled(Some("sold out".to_owned())));
    assert_eq!(cancelled.to_string(), "the execution was cancelled: sold out");
    let handle = server.handle();
    let again = server.handle().run("order", run.id().as_str());
    assert_eq!(again.state().await.unwrap().status, Status::Cancelled);
    let nowhere = handle.run("other", run.id().as_str()).result().await.unwrap_err();
    assert_eq!(nowhere, RunError::Unknown(DescribeError::NotFound));
}

#[tokio::test]
async fn starts_are_refused_with_the_reason() {
    let server = shop().start().await.unwrap();
    let handle = server.handle();
    let refused = |start: crate::Start| async { start.await.unwrap_err().to_string() };
    let map = std::collections::HashMap::from([((1, 2), 3)]);
    waiting(&server, "one").await;
    let order = json!({ "item": "x", "cents": 1 });
    for (start, says) in [
        (handle.start("odrer", &order), "workflow odrer not found"),
        (handle.start("order", &json!({})), "input validation failed: item: missing"),
        (handle.start("order", &map), "input validation failed: key must be a string"),
        (handle.start("order", &order).execution_id("one"), "execution one already exists"),
        (
            handle.start("order", &order).execution_id("a/b"),
            "execution id \"a/b\" must be 1 to 128",
        ),
    ] {
        let why = refused(start).await;
        assert!(why.contains(says), "{why}");
    }
    let order = handle.start("order", &order);
    server.stop().await.unwrap();
    assert!(matches!(order.await, Err(StartError::Unavailable(_))));
}

#[tokio::test]
async fn a_stop_ends_what_waits_and_frees_the_port() {
    let server = shop().start().await.unwrap();
    let run = waiting(&server, "one").await;
    let result = tokio::spawn(async move { run.result().await });
    let (handle, port) = (server.handle(), server.handle().address().port());
    tokio::task::yield_now().await;
    server.stop().await.unwrap();
    assert!(matches!(result.await.unwrap(), Err(RunError::Unknown(_))));
    handle.stop();
    let next = shop().configure(|config| config.server.port = port).start().await.unwrap();
    let taken = shop().configure(|config| config.server.port = port).start().await.unwrap_err();
    assert!(taken.to_string().contains(&format!("cannot listen at 127.0.0.1:{port}")), "{taken}");
    let mut next = next;
    next.handle().stop();
    next.ended().await.unwrap();
    next.ended().await.unwrap();
}

/// Without its handle, the program cannot stop it.
#[tokio::test]
async fn a_server_whose_start_is_no_longer_awaited_ends() {
    let (alive, mut ended) = mpsc::unbounded_channel::<()>();
    let abandoned = shop().data(alive).start().now_or_never();
    assert!(abandoned.is_none(), "the start takes a while");
    let ended = tokio::time::timeout(Duration::from_secs(60), ended.recv()).await;
    assert_eq!(ended, Ok(None), "what the server shares is dropped with it");
}

#[tokio::test]
async fn what_is_wrong_is_said_before_a_thread_is_started() {
    let refused = shop().workflow(Workflow::new("x").step(Step::run("a", "nothing"))).start().await;
    assert!(matches!(refused, Err(ServeError::Refused(_))), "{refused:?}");
}

/// A route that answers once its order is durable, before anything is shipped.
async fn accept(server: Handle) -> String {
    let run = server.start("order", &Order { item: "sofa", cents: 900 }).await;
    run.map_or_else(|why| why.to_string(), |run| run.id().to_string())
}

#[tokio::test]
async fn own_routes_have_the_handle() {
    let routed = shop().routes(|routes| {
        routes.post("/orders", accept).summary("Takes an order").public();
    });
    let server = routed.start().await.unwrap();
    let url = format!("http://{}/orders", server.handle().address());
    let client = crate::http_client::builder().no_proxy().build().unwrap();
    let id = client.post(url).send().await.unwrap().text().await.unwrap();
    let run = server.handle().run("order", &id);
    assert_eq!(run.settled().await.unwrap().status, Status::Suspended);
}

/// Its futures need no actix system, only tokio's timers.
#[test]
fn a_handle_is_used_from_other_threads() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let server = runtime().block_on(shop().start()).unwrap();
    let handle = server.handle();
    let others = (0..3).map(|n| {
        let (handle, runtime) = (handle.clone(), runtime());
        std::thread::spawn(move || {
            runtime.block_on(async {
                let order = json!({ "item": format!("lamp {n}"), "cents": n });
                let run = handle.start("order", &order).await.unwrap();
                tokio::time::timeout(Duration::from_secs(30), run.result()).await.unwrap().unwrap()
            })
        })
    });
    let results: Vec<Value> =
        others.collect::<Vec<_>>().into_iter().map(|other| other.join().unwrap()).collect();
    assert_eq!(results[2], json!({ "parcel": "a lamp 2" }));
    runtime().block_on(server.stop()).unwrap();
}

#[tokio::test]
async fn functions_of_steps_and_tools_start_executions() {
    async fn deliver(item: String, step: StepContext) -> Result<Value, StepError> {
        let order = Order { item: &item, cents: 1 };
        let id = format!("of:{}", step.execution_id);
        let run = step.handle()?.start("order", &order).execution_id(&id).await?;
        Ok(run.result().await?)
    }
    let order = |arguments: Value, context: ToolContext| async move {
        let run = context.handle()?.start("order", &arguments).await?;
        Ok(run.result().await?)
    };
    let server = shop()
        .workflow(
            Workflow::new("deliver")
                .step(Step::map("item", json!("input")))
                .step(Step::call("deliver", deliver))
                .step(
                    Step::then("again", tool("order"))
                        .args(json!({ "item": "'bed'", "cents": "1" })),
                ),
        )
        .tool("order", "Orders", json!({ "type": "object" }), order)
        .start()
        .await
        .unwrap();
    let handle = server.handle();
    let run = handle.start("deliver", "lamp").execution_id("one").await.unwrap();
    assert_eq!(run.result().await.unwrap(), json!({ "parcel": "a bed" }));
    let started = handle.run("order", "of:one").result().await.unwrap();
    assert_eq!(started, json!({ "parcel": "a lamp" }));
    drop((run, handle));
    server.stop().await.unwrap();
}

#[test]
fn a_context_of_a_unit_test_has_no_handle() {
    let refused = StepContext::for_test(Value::Null).handle().unwrap_err();
    assert!(refused.to_string().starts_with("no server runs this"), "{refused}");
    assert!(ToolContext::for_test().handle().is_err());
}
