//! Assignments of steps, and resumes by those who are asked.

use std::sync::Arc;

use greenroom_domain::assignment::{Answerer, AskRules};
use greenroom_domain::definition::{EscalateRule, SuspendRule};
use greenroom_domain::fact::{Fact, Recorded};
use greenroom_domain::machine::{
    ChildStatus, Command, Decision, Handled, OwnCheck, Refusal, ReplayFrom, Resume,
};
use greenroom_domain::plan::Plan;
use greenroom_domain::principal::Principal;
use greenroom_domain::status::Status;
use serde_json::json;

use crate::machine::build::{Adorned, child, map, run, workflow};
use crate::machine::why::why;
use crate::machine::world::{Setting, World};

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn to(assignees: &[&str]) -> SuspendRule {
    SuspendRule { to: texts(assignees), ..SuspendRule::default() }
}

fn escalating(after_ms: u64, assignees: &[&str]) -> Option<EscalateRule> {
    Some(EscalateRule { after_ms, to: texts(assignees) })
}

fn asked(rule: SuspendRule) -> World {
    let setting = Setting { input: json!({ "owner": "lea" }), ..Setting::default() };
    setting.start(workflow(vec![map("a", "resume").asking(rule)]))
}

fn resume(answerer: Answerer, rules: Option<AskRules>) -> Resume {
    Resume {
        answerer: Some(Arc::new(answerer)),
        rules: rules.map(Arc::new),
        data: Arc::new(json!(1)),
        ..Resume::default()
    }
}

fn somebody(user: Option<&str>, roles: &[&str]) -> Answerer {
    Answerer {
        user: user.map(Arc::from),
        roles: roles.iter().map(|role| Arc::from(*role)).collect(),
    }
}

#[test]
fn assignees_are_rendered_when_the_step_suspends() {
    let rule = SuspendRule {
        remind_ms: vec![10, 20],
        escalate: escalating(30, &["role:{{ 'boss' }}"]),
        deadline_ms: Some(50),
        ..to(&["role:manager", "user:{{ input.owner }}", "!self"])
    };
    let world = asked(rule);
    let line = "a asks role:manager user:lea !self again at 10 again at 20 at 30 role:boss: \
                Suspended at step a until 50";
    assert_eq!(world.started()[1], line);
    let folded = serde_json::to_string(world.machine.state()).unwrap();
    assert!(folded.contains(r#""ask":{"to":["role:manager","user:lea","!self"]"#), "{folded}");
    assert_eq!(asked(SuspendRule::default()).started()[1], "a asks: Suspended at step a");
}

#[test]
fn what_renders_to_no_assignee_fails_the_step_without_a_retry() {
    let rows = [
        (
            to(&["role:x", "{{ input.owner }}"]),
            "suspend.to[1]: must be user:<id>, role:<name> or !self, not \"lea\"",
        ),
        (
            to(&["user:{{ '' }}"]),
            "suspend.to[0]: must be user:<id>, role:<name> or !self, not \"user:\"",
        ),
        (to(&["user:{{ input.no.such }}"]), "suspend.to[0]: "),
        (
            SuspendRule { escalate: escalating(5, &["{{ input.owner }}"]), ..to(&["role:x"]) },
            "suspend.escalate.to[0]: must be user:<id>",
        ),
    ];
    for (rule, expected) in rows {
        let input = json!({ "owner": "lea" });
        let step = run("a").asking(rule).tries(3);
        let world = Setting { input, ..Setting::default() }.start(workflow(vec![step]));
        let line = &world.started()[1];
        assert!(line.starts_with(&format!("a fails: {expected}")), "{line}");
        assert_eq!(world.status(), Status::Error);
    }
}

#[test]
fn mistakes_are_found_when_the_definition_is_compiled() {
    let remind = |remind_ms, deadline_ms| SuspendRule { remind_ms, deadline_ms, ..to(&[]) };
    let escalate = |to_first: &[&str], after_ms, others: &[&str]| SuspendRule {
        escalate: escalating(after_ms, others),
        deadline_ms: Some(50),
        ..to(to_first)
    };
    let many: Vec<_> = (0..33).map(|_| "user:a").collect();
    let rows = [
        (to(&["role:x", "manager"]), "to.1", "must be user:<id>, role:<name> or !self"),
        (to(&["user:{{ "]), "to.0", ""),
        (to(&many), "to", "must be at most 32 users and roles"),
        (remind(vec![1; 17], None), "remind_ms", "must be at most 16 durations"),
        (remind(vec![1, 0], None), "remind_ms.1", "must be longer than 0ms"),
        (remind(vec![50], Some(50)), "remind_ms.0", "must be shorter than the `deadline`"),
        (
            escalate(&["user:a"], 50, &["user:b"]),
            "escalate.after_ms",
            "must be shorter than the `deadline`",
        ),
        (escalate(&["user:a"], 0, &["user:b"]), "escalate.after_ms", "must be longer than 0ms"),
        (escalate(&["user:a"], 5, &[]), "escalate.to", "must not be empty"),
        (
            escalate(&["user:a"], 5, &["b"]),
            "escalate.to.0",
            "must be user:<id>, role:<name> or !self",
        ),
        (escalate(&["!self"], 5, &["user:b"]), "escalate", "requires a user or a role in `to`"),
    ];
    for (rule, place, message) in rows {
        let problems = Plan::compile(workflow(vec![map("a", "1").asking(rule)])).unwrap_err();
        assert_eq!(problems[0].place.join("."), format!("steps.a.suspend.{place}"));
        assert!(problems[0].message.starts_with(message), "{problems:?}");
    }
}

#[test]
fn definitions_and_facts_without_assignments_keep_their_form() {
    let plain = serde_json::to_value(SuspendRule::default()).unwrap();
    let keys: Vec<_> = plain.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["when", "reason", "payload", "deadline_ms", "on_timeout"]);
    let read: SuspendRule = serde_json::from_value(plain).unwrap();
    assert_eq!(read, SuspendRule::default());
    let older = json!({
        "n": 2, "t": 5,
        "f": { "StepSuspended":
            { "path": "a", "reason": "why", "payload": null, "deadline": null, "id": "1" } },
    });
    let fact: Recorded = serde_json::from_value(older.clone()).unwrap();
    assert!(matches!(fact.fact, Fact::StepSuspended { ask: None, .. }));
    assert_eq!(serde_json::to_value(&fact).unwrap(), older);
}

#[test]
fn a_resume_by_somebody_needs_the_rules_as_they_are_now() {
    let mut world = asked(to(&["role:manager", "!self"]));
    let told = world.try_send(Command::Resume(resume(somebody(Some("lea"), &[]), None)));
    let Ok(Handled::Decided(Decision::Admit { suspension_id, opened_with, resume: again })) = told
    else {
        panic!("{told:?}")
    };
    assert_eq!(again.suspension_id.as_deref(), Some(&*suspension_id));
    assert_eq!(opened_with.unwrap().to.len(), 2);
    let now = |to: &[&str]| {
        let to = to.iter().map(|text| text.parse().unwrap()).collect();
        Some(AskRules { to, ..AskRules::default() })
    };
    let manager = somebody(Some("lea"), &["manager"]);
    let rows = [
        (somebody(Some("lea"), &[]), now(&["role:manager"])),
        (somebody(None, &["manager"]), now(&["role:manager", "!self"])),
        (somebody(Some("ann"), &["manager"]), now(&["role:manager", "!self"])),
        (manager.clone(), now(&["user:bob"])),
    ];
    for (answerer, rules) in rows {
        let told = world.try_send(Command::Resume(resume(answerer.clone(), rules)));
        assert_eq!(told, Err(Refusal::NotAssigned), "{answerer:?}");
    }
    let command = Command::Resume(resume(manager, now(&["role:manager", "!self"])));
    assert_eq!(world.send(command)[1], "a is answered 1");
}

#[test]
fn a_resume_of_a_child_is_forwarded_once_it_is_admitted() {
    let mut world = World::of(vec![child("p")]);
    let (id, reason) = (Arc::from("theirs"), Arc::from("sure?"));
    let status = ChildStatus::Suspended { id, reason, payload: None, deadline: None };
    world.report("p", 4, status);
    let told = world.try_send(Command::Resume(resume(somebody(None, &[]), None)));
    let Ok(Handled::Decided(Decision::Admit { suspension_id, resume, .. })) = told else {
        panic!("{told:?}")
    };
    assert_eq!(&*suspension_id, "theirs");
    let rules = Some(Arc::new(AskRules::default()));
    let told = world.try_send(Command::Resume(Resume { rules, ..resume }));
    let Ok(Handled::Decided(Decision::Forward { resume, .. })) = told else { panic!("{told:?}") };
    assert!(resume.answerer.is_some() && resume.rules.is_none(), "the child looks again");
}

/// Resumes with a check of the program's own that is still to be made.
fn unchecked(data: serde_json::Value) -> Command {
    let own_check = OwnCheck::Needed;
    Command::Resume(Resume { data: Arc::new(data), own_check, ..Resume::default() })
}

#[test]
fn the_programs_check_comes_last_and_is_about_one_suspension() {
    let mut world = World::of(vec![
        map("a", "resume").asks().wants(json!({ "type": "integer" })),
        map("b", "resume").asks(),
    ]);
    let refused = world.try_send(unchecked(json!("x")));
    assert!(matches!(refused, Err(Refusal::InvalidData(_))), "{refused:?}");
    let asked = world.try_send(unchecked(json!(1)));
    let Ok(Handled::Decided(Decision::Check { path, suspension_id, resume })) = asked else {
        panic!("{asked:?}")
    };
    assert_eq!(path.as_deref(), Some("a"));
    assert_eq!(resume.suspension_id.as_deref(), Some(&*suspension_id));
    assert_eq!(world.send(Command::Resume(resume.clone()))[1], "a is answered 1");
    // an answer that passed is not one to the next question
    let late = world.try_send(Command::Resume(resume));
    assert!(matches!(late, Err(Refusal::SuspensionPassed { .. })), "{late:?}");
}

#[test]
fn rules_are_looked_at_again_after_the_programs_check() {
    let mut world = asked(to(&["role:manager"]));
    let manager = resume(somebody(None, &["manager"]), Some(AskRules::default()));
    let first = Resume { own_check: OwnCheck::Needed, ..manager };
    let told = world.try_send(Command::Resume(first));
    let Ok(Handled::Decided(Decision::Check { resume, .. })) = told else { panic!("{told:?}") };
    let told = world.try_send(Command::Resume(resume));
    assert!(matches!(told, Ok(Handled::Decided(Decision::Admit { .. }))), "{told:?}");
}

#[test]
fn the_end_of_a_pause_is_checked_too_and_what_a_child_is_asked_by_the_child() {
    let mut world = World::of(vec![run("a"), child("p")]);
    world.send(Command::Suspend { reason: Arc::from("stop"), by: None });
    world.finish("a", 1);
    let told = world.try_send(unchecked(json!(2)));
    let Ok(Handled::Decided(Decision::Check { path: None, resume, .. })) = told else {
        panic!("{told:?}")
    };
    world.send(Command::Resume(resume));
    let (id, reason) = (Arc::from("theirs"), Arc::from("sure?"));
    world.report("p", 4, ChildStatus::Suspended { id, reason, payload: None, deadline: None });
    let told = world.try_send(unchecked(json!(3)));
    assert!(matches!(told, Ok(Handled::Decided(Decision::Forward { .. }))), "{told:?}");
}

#[test]
fn the_answer_of_a_replay_counts_if_its_giver_is_asked() {
    let world = asked(to(&["role:manager", "!self"]));
    let by = |id: &str| Some(Arc::new(Principal::verified(id)));
    let roles = |roles: &[&str]| Some(roles.iter().map(|role| Arc::from(*role)).collect());
    // the execution is of ann
    let rows = [
        (by("lea"), None, false, Status::Completed),
        (by("lea"), roles(&["manager"]), false, Status::Completed),
        (by("lea"), roles(&[]), false, Status::Suspended),
        (by("ann"), roles(&["manager"]), false, Status::Suspended),
        (None, roles(&["manager"]), false, Status::Suspended),
        (by("lea"), roles(&["manager"]), true, Status::Suspended),
    ];
    for (by, roles, is_claim, expected) in rows {
        let (step_id, answer) = (Some("a".to_owned()), Some(Arc::new(json!(1))));
        let from = ReplayFrom { step_id, answer, by: by.clone(), ..ReplayFrom::default() };
        let from = ReplayFrom { roles, is_claim, ..from };
        let replay = world.replay_from(from).unwrap();
        assert_eq!(replay.status(), expected, "{by:?}");
        let says = why(&replay).iter().any(|line| line.contains("despite an answer"));
        assert_eq!(says, expected == Status::Suspended, "{by:?}");
    }
}
