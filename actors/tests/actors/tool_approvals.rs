//! Approvals that tools ask for when they are called.

use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::agent::tool::{ToolDefinition, ToolError};
use greenroom_actors::agent::{Approval, CallApproval};
use greenroom_actors::domain::message::ToolOutcome;
use greenroom_actors::ports::store::{AskKind, GenerationStatus};
use greenroom_actors::testkit::pass;
use serde_json::json;

use crate::approvals::{answer, calls, function, generate, open_asks, recorded, text, world};

/// A tool that needs an approval of `subject`, and returns the approvals that it finds.
fn reviewed(subject: &'static str) -> ToolDefinition {
    let made = function("book", move |_, context| match context.approved.as_deref() {
        Some(approved) if approved == subject => Ok(json!(approved)),
        _ => Err(ToolError::NeedsApproval(Box::new(CallApproval {
            reason: format!("It is {subject} now"),
            subject: Arc::from(subject),
            to: Vec::new(),
            deadline: Some(Duration::from_secs(60)),
        }))),
    });
    ToolDefinition { approval: Some(Arc::new(Approval::always())), ..made }
}

#[actix::test]
async fn a_tool_asks_for_an_approval_beside_the_one_that_its_calls_need() {
    tokio::time::pause();
    for (is_approved, expected) in [
        (true, ToolOutcome::Output(json!("v2"))),
        (false, ToolOutcome::Denied("refused by a person".to_owned())),
    ] {
        let script = [calls(&[("c1", "book", json!({}))]), text("done")];
        let (world, _) = world(script, vec![reviewed("v2")]).await;
        let waiting = generate(&world).await;
        let first = open_asks(&world).await;
        assert_eq!(
            (first[0].kind, &*first[0].reason),
            (AskKind::Approval, "Call of the tool book")
        );
        answer(&world, json!({ "approved": true })).await;
        pass(Duration::from_millis(100)).await;
        let second = open_asks(&world).await;
        assert_eq!((second[0].kind, &*second[0].reason), (AskKind::Approval, "It is v2 now"));
        assert_ne!(first[0].id, second[0].id);
        let world = world.restart().await;
        answer(&world, json!({ "approved": is_approved })).await;
        let (status, _, outcomes) = recorded(&world, &waiting.id).await;
        assert_eq!((status, outcomes), (GenerationStatus::Completed, vec![expected]));
    }
}

#[actix::test]
async fn an_approval_that_is_not_given_in_time_refuses_the_call() {
    tokio::time::pause();
    let script = [calls(&[("c1", "book", json!({}))]), text("done")];
    let tool = ToolDefinition { approval: None, ..reviewed("v2") };
    let (world, _) = world(script, vec![tool]).await;
    let waiting = generate(&world).await;
    pass(Duration::from_secs(70)).await;
    let (status, _, outcomes) = recorded(&world, &waiting.id).await;
    let late = ToolOutcome::Denied("refused: it was not answered in time".to_owned());
    assert_eq!((status, outcomes), (GenerationStatus::Completed, vec![late]));
}
