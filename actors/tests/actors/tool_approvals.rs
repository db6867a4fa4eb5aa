//! Approvals that tools ask for when they are called.

use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::agent::tool::{ToolDefinition, ToolError};
use greenroom_actors::agent::{Approval, CallApproval};
use greenroom_actors::domain::message::ToolOutcome;
use greenroom_actors::ports::store::{Ask, AskKind, AskState, GenerationStatus};
use greenroom_actors::requests::{
    AnswerAsk, ApproveCall, AskAccess, AskError, ChatReply, ContinueChat, Permissions, Reply,
};
use greenroom_actors::runtime::ContinueChatError;
use greenroom_actors::testkit::{World, pass};
use greenroom_actors::visibility::Visibility;
use serde_json::json;

use crate::approvals::{
    answer, calls, decision, function, generate, open_asks, recorded, text, world,
};
use crate::generations::Collector;

/// A tool that needs an approval of `subject`, and returns the approvals that it finds.
fn reviewed(subject: &'static str) -> ToolDefinition {
    let made = function("book", move |_, context| match context.approved.as_deref() {
        Some(approved) if approved == subject => Ok(json!(approved)),
        _ => Err(ToolError::NeedsApproval(Box::new(CallApproval {
            reason: format!("It is {subject} now"),
            subject: Arc::from(subject),
            to: Vec::new(),
            deadline: Some(Duration::from_secs(60)),
            permission: Some(Arc::from("POST /books")),
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

/// Permissions of a caller that may make one request.
fn may(request: &'static str) -> Permissions {
    Permissions::of(move |asked| match asked {
        asked if asked == request => Ok(()),
        _ => Err("the role admin".to_owned()),
    })
}

/// Returns the outcomes of this decision of a caller without the permission, by every door.
async fn by_every_door(
    world: &World,
    ask: &Ask,
    id: &str,
    approved: bool,
) -> [Option<AskError>; 3] {
    let permissions = may("POST /other");
    let answer = || AnswerAsk {
        access: AskAccess { permissions: permissions.clone(), ..AskAccess::default() },
        ..decision(json!({ "approved": approved }))
    };
    let by_id = world.runtime.answer_ask(ask.clone(), answer()).await.err();
    let by_call = ApproveCall {
        agent_id: "desk".to_owned(),
        generation_id: id.to_owned(),
        tool_call_id: "c1".to_owned(),
        visibility: Visibility::Everything,
        answer: answer(),
    };
    let by_call = world.runtime.approve_call(by_call).await.err();
    let (subscriber, _address) = Collector::default().subscribe();
    let chat = ContinueChat {
        agent_id: "desk".to_owned(),
        conversation: None,
        replies: vec![ChatReply {
            tool_call_id: "c1".to_owned(),
            approval_id: Some(ask.id.to_string()),
            reply: Reply::Decided { approved, reason: None },
        }],
        visibility: Visibility::Everything,
        by: None,
        answerer: None,
        permissions,
    };
    let in_chat = match world.runtime.continue_chat(chat, subscriber).await {
        Err(ContinueChatError::Ask(error)) => Some(error),
        _ => None,
    };
    [by_id, by_call, in_chat]
}

#[actix::test]
async fn an_approval_that_counts_for_more_needs_its_permission_by_every_door() {
    tokio::time::pause();
    let script = [calls(&[("c1", "book", json!({}))]), text("done")];
    let tool = ToolDefinition { approval: None, ..reviewed("v2") };
    let (world, _) = world(script, vec![tool]).await;
    let waiting = generate(&world).await;
    let world = world.restart().await;
    let ask = open_asks(&world).await.remove(0);
    let refused = AskError::NotPermitted {
        request: Arc::from("POST /books"),
        needs: "the role admin".to_owned(),
    };
    assert_eq!(refused.to_string(), "the approval needs what POST /books needs: the role admin");
    let outcomes = by_every_door(&world, &ask, &waiting.id, true).await;
    assert_eq!(outcomes, [(); 3].map(|()| Some(refused.clone())));
    assert_eq!(open_asks(&world).await, std::slice::from_ref(&ask), "it stays open");
    let access = AskAccess { permissions: may("POST /books"), ..AskAccess::default() };
    let allowed = AnswerAsk { access, ..decision(json!({ "approved": true })) };
    let answered = world.runtime.answer_ask(ask, allowed).await.unwrap();
    assert_eq!(answered.ask.state, AskState::Answered);
    let (status, _, outcomes) = recorded(&world, &waiting.id).await;
    let booked = vec![ToolOutcome::Output(json!("v2"))];
    assert_eq!((status, outcomes), (GenerationStatus::Completed, booked));
}

#[actix::test]
async fn declining_needs_no_permission() {
    tokio::time::pause();
    let script = [calls(&[("c1", "book", json!({}))]), text("done")];
    let tool = ToolDefinition { approval: None, ..reviewed("v2") };
    let (world, _) = world(script, vec![tool]).await;
    let waiting = generate(&world).await;
    let ask = open_asks(&world).await.remove(0);
    let [declined, ..] = by_every_door(&world, &ask, &waiting.id, false).await;
    assert_eq!(declined, None);
    let (status, _, outcomes) = recorded(&world, &waiting.id).await;
    let refused = vec![ToolOutcome::Denied("refused by a person".to_owned())];
    assert_eq!((status, outcomes), (GenerationStatus::Completed, refused));
}
