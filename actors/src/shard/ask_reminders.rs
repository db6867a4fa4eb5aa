//! Reminders and escalations of asks.
//!
//! One process looks for what is due. An ask is changed only if it has not been changed meanwhile,
//! so that nothing happens twice while another process takes the work over.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::ask_alarm::next_look::NextLook;
use crate::domain::assignment::{AskRules, Passed};
use crate::domain::time::Timestamp;
use crate::observe::log_record::LogScope;
use crate::ports::store::{Ask, AskRevision, AskSubject, AskedCall, AskedStep, DueAsks};
use crate::requests::Unavailable;
use crate::shared::Shared;

/// Interval between looks for what other processes have noted: the longest delay of a reminder.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// Asks that are read at once.
const PAGE: usize = 100;

/// Does what is due until the runtime drains or is dropped.
pub(crate) async fn remind(shared: Weak<Shared>) {
    let Some(mut next) = shared.upgrade().map(|it| NextLook::now(&it, LOOK_EVERY)) else { return };
    loop {
        let Some(shared) = shared.upgrade().filter(|shared| !shared.is_draining()) else { return };
        let now = shared.clock.now();
        if shared.ownership.does_housework()
            && let Err(why) = look(&shared, now).await
        {
            let level = shared.level_of_failure(log::Level::Warn);
            log::log!(level, "cannot remind of what waits in the inbox, trying again: {why}");
        }
        next.plan(&shared, now).await;
        let clock = Arc::clone(&shared.clock);
        drop(shared);
        next.wait(&*clock).await;
    }
}

async fn look(shared: &Shared, now: Timestamp) -> Result<(), Unavailable> {
    let mut after = None;
    loop {
        let DueAsks { asks, next } = shared.store.due_asks(now, after, PAGE).await?;
        for ask in asks {
            if shared.is_draining() {
                return Ok(());
            }
            let id = Arc::clone(&ask.id);
            match pass(shared, ask, now).await {
                Ok(()) => {}
                Err(why @ Unavailable::Corrupt(_)) => log::error!("ask {id}: {why}"),
                Err(why) => return Err(why),
            }
        }
        if next.is_none() {
            return Ok(());
        }
        after = next;
    }
}

/// Does what is due of an ask, unless it has changed meanwhile, or its deadline has passed.
async fn pass(shared: &Shared, ask: Ask, now: Timestamp) -> Result<(), Unavailable> {
    // the runtime ends those of calls, and the timer of its step any other
    if ask.deadline.is_some_and(|deadline| deadline <= now) {
        return Ok(());
    }
    let (rules, passed) = ask.rules.clone().pass(ask.opened_at, now);
    let revision = AskRevision {
        id: ask.id.clone(),
        revision: ask.revision,
        next_due: ask.next_due(&rules),
        rules: rules.clone(),
        claim: ask.claim.clone(),
    };
    let is_first = shared.store.revise_ask(revision).await?;
    if is_first {
        log_passed(&ask, &rules, passed);
    }
    Ok(())
}

fn log_passed(ask: &Ask, rules: &AskRules, passed: Passed) {
    if let Some(text) = text_of(ask, rules, passed) {
        scope_of(ask).within(|| log::info!("{text}"));
    }
}

/// Returns the line of the log about what was due.
fn text_of(ask: &Ask, rules: &AskRules, passed: Passed) -> Option<String> {
    let Ask { id, subject, reason, opened_at, .. } = ask;
    let of = match subject {
        AskSubject::Step(AskedStep { execution_id, path, .. }) => {
            format!("step {path} of execution {execution_id}")
        }
        AskSubject::Call(AskedCall { generation_id, tool_name, .. }) => {
            format!("a call of {tool_name} of generation {generation_id}")
        }
    };
    let asked = rules.to.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let asked = if asked.is_empty() { "anyone" } else { &asked };
    let since = opened_at.to_iso();
    let said = match passed {
        Passed { is_escalated: false, is_reminded: false } => return None,
        Passed { is_escalated: false, is_reminded: true } => {
            format!("waits for {asked} since {since}")
        }
        Passed { is_escalated: true, is_reminded: false } => {
            format!("has no answer since {since}, now asking {asked}")
        }
        Passed { is_escalated: true, is_reminded: true } => {
            format!("has no answer since {since}, after a reminder now asking {asked}")
        }
    };
    Some(format!("ask {id} ({of}) {said}: {reason}"))
}

fn scope_of(ask: &Ask) -> Arc<LogScope> {
    let scope = LogScope { user_id: ask.user_id.clone(), ..LogScope::default() };
    Arc::new(match &ask.subject {
        AskSubject::Step(AskedStep { execution_id, workflow_id, .. }) => LogScope {
            execution_id: Some(execution_id.clone()),
            workflow_id: Some(Arc::clone(workflow_id)),
            ..scope
        },
        AskSubject::Call(AskedCall { generation_id, agent_id, step, .. }) => LogScope {
            execution_id: step.as_ref().map(|step| step.execution_id.clone()),
            workflow_id: step.as_ref().map(|step| Arc::clone(&step.workflow_id)),
            generation_id: Some(Arc::clone(generation_id)),
            agent_id: Some(Arc::clone(agent_id)),
            ..scope
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::ExecutionId;
    use crate::ports::store::{AskKind, AskState};

    fn ask(subject: AskSubject) -> Ask {
        Ask {
            id: Arc::from("ask_1"),
            kind: AskKind::Step,
            state: AskState::Open,
            subject,
            user_id: Some(Arc::from("ann")),
            reason: Arc::from("Refund 500?"),
            opened_at: Timestamp(0),
            deadline: None,
            closed_at: None,
            revision: 0,
            rules: AskRules::default(),
            claim: None,
        }
    }

    fn of_step() -> Ask {
        ask(AskSubject::Step(AskedStep {
            execution_id: ExecutionId::trusted("e"),
            workflow_id: Arc::from("w"),
            path: "all/a".into(),
        }))
    }

    fn of_call() -> Ask {
        ask(AskSubject::Call(AskedCall {
            generation_id: Arc::from("g"),
            agent_id: Arc::from("desk"),
            tool_call_id: Arc::from("c1"),
            tool_name: Arc::from("refund"),
            step: None,
        }))
    }

    #[test]
    fn lines_name_what_waits_and_everything_that_was_due() {
        let to = ["user:lea", "role:lead"].map(|text| text.parse().unwrap()).to_vec();
        let named = AskRules { to, ..AskRules::default() };
        let line = |ask: &Ask, rules: &AskRules, is_reminded, is_escalated| {
            text_of(ask, rules, Passed { is_reminded, is_escalated }).unwrap()
        };
        let since = "since 1970-01-01T00:00:00.000Z";
        assert_eq!(
            line(&of_step(), &named, true, false),
            format!(
                "ask ask_1 (step all/a of execution e) waits for user:lea, role:lead {since}: \
                 Refund 500?"
            )
        );
        assert_eq!(
            line(&of_call(), &AskRules::default(), true, false),
            format!(
                "ask ask_1 (a call of refund of generation g) waits for anyone {since}: Refund 500?"
            )
        );
        let escalated = line(&of_step(), &named, false, true);
        let expected = format!("has no answer {since}, now asking user:lea, role:lead: ");
        assert!(escalated.contains(&expected), "{escalated}");
        let both = line(&of_step(), &named, true, true);
        let expected = format!("has no answer {since}, after a reminder now asking user:lea");
        assert!(both.contains(&expected), "{both}");
        assert_eq!(text_of(&of_step(), &named, Passed::default()), None);
    }

    #[test]
    fn records_carry_the_ids_of_what_waits() {
        let of = |ask: Ask| LogScope::clone(&scope_of(&ask));
        let (step, call) = (of(of_step()), of(of_call()));
        assert_eq!(step.execution_id, Some(ExecutionId::trusted("e")));
        assert_eq!(step.workflow_id.as_deref(), Some("w"));
        assert_eq!(call.generation_id.as_deref(), Some("g"));
        assert_eq!(call.agent_id.as_deref(), Some("desk"));
        assert!([step, call].iter().all(|scope| scope.user_id.as_deref() == Some("ann")));
    }
}
