//! Questions of tools that can be declined, that end, and that have a memo of their tool.

use std::time::Duration;

use greenroom_actors::agent::ToolAsk;
use greenroom_actors::agent::tool::ToolDefinition;
use greenroom_actors::domain::message::ToolOutcome;
use greenroom_actors::ports::store::{AskState, GenerationStatus};
use greenroom_actors::requests::AskError;
use greenroom_actors::testkit::pass;
use greenroom_actors::visibility::Visibility;
use serde_json::{Value, json};

use crate::approvals::{
    answer, ask, calls, decision, function, generate, open_asks, recorded, text, world,
};

const MEMO: &str = "k3pt";

/// A tool that asks twice, and returns its answers with the memos that it found.
fn booking(deadline: Option<Duration>) -> ToolDefinition {
    function("book", move |_, context| {
        let ask = |question: &str, memo: Value| {
            let schema = json!({ "type": "object", "required": ["n"],
                                 "properties": { "n": { "type": "integer" } } });
            let ask = ToolAsk::new(question).schema(schema).declinable().memo(memo);
            ToolAsk { deadline, ..ask }
        };
        let memo = context.memo.as_deref().cloned();
        let first = context.ask(ask("How many?", json!([MEMO, 1])))?;
        let second = context.ask(ask("Sure?", json!([MEMO, 2])))?;
        Ok(json!([first, second, memo]))
    })
}

#[actix::test]
async fn a_tool_finds_the_memo_of_its_newest_question_and_declined_answers() {
    tokio::time::pause();
    let script = [calls(&[("c1", "book", json!({}))]), text("done")];
    let (world, _) = world(script, vec![booking(None)]).await;
    let waiting = generate(&world).await;
    let open = ask(&world, &waiting.asks[0].ask_id).await;
    for data in [
        json!({ "n": "x" }),
        json!({ "action": "accept" }),
        json!({ "action": "decline", "n": 1.5 }),
    ] {
        let wrong = world.runtime.answer_ask(open.clone(), decision(data)).await;
        assert!(matches!(wrong, Err(AskError::InvalidData(_))), "{wrong:?}");
    }
    let shown = world.runtime.describe_ask(open.clone()).await.unwrap();
    assert!(shown.can_decline && !format!("{shown:?}").contains(MEMO), "{shown:?}");
    let entry = world.runtime.generation("desk", &waiting.id, &Visibility::Everything).await;
    assert!(!format!("{:?}", entry.unwrap()).contains(MEMO));
    answer(&world, json!({ "n": 1 })).await;
    pass(Duration::from_millis(100)).await;
    assert_eq!(&*open_asks(&world).await[0].reason, "Sure?");
    answer(&world, json!({ "action": "decline" })).await;
    let (status, _, outcomes) = recorded(&world, &waiting.id).await;
    assert_eq!(status, GenerationStatus::Completed);
    let expected = json!([
        { "action": "accept", "content": { "n": 1 } }, { "action": "decline" }, [MEMO, 2]
    ]);
    assert_eq!(outcomes, [ToolOutcome::Output(expected)]);
}

#[actix::test]
async fn a_question_that_is_not_answered_in_time_ends_its_call() {
    tokio::time::pause();
    let script = [calls(&[("c1", "book", json!({}))]), text("done")];
    let (world, _) = world(script, vec![booking(Some(Duration::from_secs(60)))]).await;
    let waiting = generate(&world).await;
    pass(Duration::from_secs(50)).await;
    assert_eq!(recorded(&world, &waiting.id).await.0, GenerationStatus::Suspended);
    pass(Duration::from_secs(20)).await;
    let (status, _, outcomes) = recorded(&world, &waiting.id).await;
    let late = ToolOutcome::Denied("refused: it was not answered in time".to_owned());
    assert_eq!((status, outcomes), (GenerationStatus::Completed, vec![late]));
    assert_eq!(ask(&world, &waiting.asks[0].ask_id).await.state, AskState::Expired);
}
