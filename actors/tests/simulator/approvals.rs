//! A tool whose calls need approval: its calls, the answers of callers, and the asks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use greenroom_actors::agent::Approval;
use greenroom_actors::agent::tool::{ToolBody, ToolContext, ToolDefinition};
use greenroom_actors::ports::model::ToolSpec;
use greenroom_actors::ports::store::{
    Ask, AskFilter, AskState, AskSubject, Asks as _, GenerationStatus, Generations as _, PageSize,
};
use greenroom_actors::requests::{AnswerAsk, AskAccess, AskError};
use greenroom_actors::visibility::Visibility;
use serde_json::json;

use crate::simulator::bodies::{WORK_MS, sleep};
use crate::simulator::callers::{Caller, Settled};
use crate::simulator::dice::Dice;
use crate::simulator::promises::{Known, Wish};
use crate::simulator::stage::Stage;

/// Name of the tool.
pub(crate) const PAY: &str = "pay";

/// The tool. In some worlds its asks have a deadline.
pub(crate) fn pay(stage: &Arc<Stage>, process: u64) -> ToolDefinition {
    let spec = ToolSpec {
        name: PAY.to_owned(),
        description: String::new(),
        parameters: json!({ "type": "object" }),
    };
    let mut dice = Dice::about(stage.seed, PAY);
    let approval = match dice.chance(50) {
        true => Approval::always().deadline(Duration::from_millis(1 + dice.millis(200_000))),
        false => Approval::always(),
    };
    let stage = Arc::clone(stage);
    let body = ToolBody::Function(Arc::new(move |_, context: ToolContext| {
        paid(&stage, process, &context);
        let mut dice = Dice::about(stage.seed, &context.idempotency_key);
        let stage = Arc::clone(&stage);
        async move {
            sleep(&stage, dice.millis(WORK_MS)).await;
            match !stage.is_healed() && dice.chance(20) {
                true => Err("it did not work out".into()),
                false => Ok(json!("paid")),
            }
        }
        .boxed()
    }));
    let tool = ToolDefinition::new(spec, body).unwrap();
    ToolDefinition { approval: Some(Arc::new(approval)), ..tool }
}

/// Checks a call: it was approved, and has one key however often it is made.
fn paid(stage: &Stage, process: u64, context: &ToolContext) {
    let generation = context.generation_id.as_deref().unwrap_or_default();
    let (call, key) = (&context.tool_call_id, &context.idempotency_key);
    stage.note(&format!("{generation} {call} is paid under {key}"));
    stage.count("paid");
    let is_believed = process == 0 || stage.book.is_believed(process);
    stage.require(is_believed, || format!("{key} is paid by a process that may be gone"));
    let of_call = |ask: &&Ask| match &ask.subject {
        AskSubject::Call(of) => *of.generation_id == *generation && of.tool_call_id == *call,
        AskSubject::Step(_) => false,
    };
    let asks = asks(stage, false);
    let ask = asks.iter().find(of_call);
    let is_approved = ask.is_some_and(|ask| {
        ask.state == AskState::Answered && answer(stage, ask)["approved"] == true
    });
    stage.require(is_approved, || format!("{generation} {call} is paid and not approved: {ask:?}"));
    let place = (generation.to_owned(), call.to_string());
    let known = stage.key_of_call(place, key);
    stage.require(known == *key, || format!("{generation} {call} is paid under {known} and {key}"));
}

/// Returns all asks of calls that are open, or closed.
fn asks(stage: &Stage, is_open: bool) -> Vec<Ask> {
    let filter = AskFilter { is_open, ..AskFilter::default() };
    let page = stage.disk().asks(&filter, None, usize::MAX - 1).now_or_never();
    let mut asks = page.unwrap().unwrap().asks;
    asks.retain(|ask| matches!(ask.subject, AskSubject::Call(_)));
    asks
}

fn answer(stage: &Stage, ask: &Ask) -> serde_json::Value {
    let content = stage.disk().ask_content(&ask.id).now_or_never().unwrap().unwrap();
    content.answer.map(|answer| (*answer.data).clone()).unwrap_or_default()
}

/// Returns the ids of what waits for approval.
pub(crate) fn open(stage: &Stage) -> Vec<Arc<str>> {
    asks(stage, true).into_iter().map(|ask| ask.id).collect()
}

/// Returns how often each answer is recorded.
pub(crate) fn recorded(stage: &Stage) -> BTreeMap<u64, u64> {
    let mut found = BTreeMap::new();
    let answered = asks(stage, false).into_iter().filter(|ask| ask.state == AskState::Answered);
    for ask in answered {
        let answer = answer(stage, &ask);
        let token = answer["reason"].as_str().and_then(|token| token.parse().ok());
        *found.entry(token.unwrap_or_default()).or_default() += 1;
    }
    found
}

/// Checks at the end of a world that nothing waits or works.
pub(crate) fn nothing_waits(stage: &Stage) {
    for ask in open(stage) {
        stage.violated(&format!("{ask} is open, and everything has ended"));
    }
    let page =
        stage.disk().generations("helper", None, 0, PageSize::of(usize::MAX - 1)).now_or_never();
    for entry in page.unwrap().unwrap().entries {
        let (id, status) = (entry.record.id, entry.record.status);
        let waits = [GenerationStatus::Working, GenerationStatus::Suspended].contains(&status);
        stage.require(!waits, || format!("the generation {id} is left as {status:?}"));
        stage.count(&format!("generation {status:?}"));
    }
}

impl Caller {
    /// Answers an ask of a call.
    pub(crate) async fn approve(self, ask_id: Arc<str>, approved: bool, token: u64) -> Settled {
        let what = format!("approve {ask_id} {approved} n {token}");
        self.stage.note(&what);
        let data = json!({ "approved": approved, "reason": token.to_string() });
        let answer = AnswerAsk { data, by: None, access: AskAccess::default(), idempotency: None };
        let reply = match self.runtime.find_ask(&ask_id, &Visibility::Everything).await {
            Ok(ask) => self.runtime.answer_ask(ask, answer).await,
            Err(error) => Err(error),
        };
        let known = match &reply {
            Ok(_) => {
                let is_durable = recorded(&self.stage).contains_key(&token);
                self.stage.require(is_durable, || format!("{what}: not durable at its reply"));
                Known::Granted
            }
            Err(AskError::Unavailable(_)) => Known::Nothing,
            Err(AskError::Closed { .. }) => Known::Refused,
            Err(error) => {
                self.stage.violated(&format!("{what}: {error:?}"));
                Known::Refused
            }
        };
        let is_settled = known != Known::Nothing;
        self.note_reply(&what, &reply.map(|it| it.ask.state), (Wish::Approve, token), known);
        is_settled
    }
}
