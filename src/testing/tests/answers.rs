//! Tests of answers: who gives them, and refusals.

use super::*;
use crate::testing::{AnswerError, Answerer};

/// An approval that leads give, but not by a claimed id and not on Sundays.
fn guarded() -> Greenroom {
    let asked = Suspend::always().to(["role:lead", "user:ann"]).deadline(48 * HOUR);
    let schema = json!({ "required": ["approved"] });
    let given = json!({ "approved": "resume.approved", "by": "resumed_by.id if resumed_by is not none else none" });
    let approve = Step::map("approve", given).suspend(asked).resume_schema(schema);
    Greenroom::new().workflow(Workflow::new("w").step(approve)).on_answer(|answer| async move {
        let is_verified = answer.by.is_none_or(|by| by.verified);
        match answer.data["day"].as_str() {
            _ if !is_verified => Err("sign in first".to_owned()),
            Some("Sunday") => Err("not on Sundays".to_owned()),
            _ => Ok(()),
        }
    })
}

fn lead() -> Answerer {
    Answerer::new("bob").role("lead")
}

fn yes() -> Value {
    json!({ "approved": true })
}

fn sunday() -> Value {
    json!({ "approved": true, "day": "Sunday" })
}

#[test]
fn refusals_have_kinds() {
    type Row = (Answerer, Value, AnswerError);
    let to = || vec!["role:lead".to_owned(), "user:ann".to_owned()];
    let rows: [Row; 6] = [
        (Answerer::new("bob"), yes(), AnswerError::NotAsked { to: to() }),
        (Answerer::unknown(), yes(), AnswerError::NotAsked { to: to() }),
        (Answerer::claimed("ann"), yes(), AnswerError::Refused("sign in first".to_owned())),
        (Answerer::from("ann"), sunday(), AnswerError::Refused("not on Sundays".to_owned())),
        (
            Answerer::unknown().role("lead"),
            json!({}),
            AnswerError::InvalidData("approved: missing".to_owned()),
        ),
        (
            lead(),
            json!(1),
            AnswerError::NotWaiting {
                about: "pay".to_owned(),
                waiting: vec!["approve".to_owned()],
            },
        ),
    ];
    run(async move {
        let world = guarded().test().launch().await.unwrap();
        let run = world.start("w", &Value::Null).await.unwrap();
        run.settled().await.unwrap();
        for (by, data, expected) in rows {
            let about = if data == 1 { "pay" } else { "approve" };
            let refused = world.answer_by(by.clone(), about, &data).await;
            assert_eq!(refused, Err(expected), "{by:?} {data}");
        }
        world.answer_by(lead(), "approve", &yes()).await.unwrap();
        assert_eq!(run.result().await, Ok(json!({ "approved": true, "by": "bob" })));
        let nothing = world.answer("approve", &yes()).await.unwrap_err();
        assert_eq!(nothing.to_string(), "approve waits for no answer; nothing does");
        world.end().await;
    });
}

#[test]
fn others_wait_for_the_end_of_a_claim() {
    run(async move {
        let world = guarded().test().launch().await.unwrap();
        let run = world.start("w", &Value::Null).await.unwrap();
        run.settled().await.unwrap();
        let to = vec!["role:lead".to_owned(), "user:ann".to_owned()];
        let unasked = world.claim("bob", "approve").await;
        assert_eq!(unasked, Err(AnswerError::NotAsked { to }));
        let nameless = world.claim(Answerer::unknown().role("lead"), "approve").await;
        assert!(matches!(nameless, Err(AnswerError::Failed(_))), "{nameless:?}");
        let nothing = world.claim(lead(), "pay").await;
        assert!(matches!(nothing, Err(AnswerError::NotWaiting { .. })), "{nothing:?}");

        world.claim(lead(), "approve").await.unwrap();
        let claimed = Err(AnswerError::Claimed { by: "bob".to_owned() });
        assert_eq!(world.answer_by("ann", "approve", &yes()).await, claimed);
        assert_eq!(world.claim("ann", "approve").await, claimed);
        world.skip(HOUR).await;
        world.answer_by("ann", "approve", &yes()).await.unwrap();
        assert_eq!(run.result().await, Ok(json!({ "approved": true, "by": "ann" })));
        world.end().await;
    });
}

#[test]
fn a_refused_answer_leaves_the_ask_to_the_next_one() {
    let case = Case::new("w")
        .answer_by("bob", "approve", HOUR, &yes())
        .expect_refusal("others are asked: role:lead, user:ann")
        .answer_by(lead(), "approve", 2 * HOUR, &sunday())
        .expect_refusal("not on Sundays")
        .answer_by(lead(), "approve", 3 * HOUR, &yes())
        .expect("result.by == 'bob'")
        .expect_took(3 * HOUR);
    let outcome = run(case.crash_everywhere().run(guarded)).unwrap();
    assert_eq!(
        outcome.refusals,
        [
            "approve: others are asked: role:lead, user:ann",
            "approve: the answer was refused: not on Sundays"
        ]
    );
    assert!(outcome.kills > 1, "{outcome:?}");
}

#[test]
fn an_escalation_asks_others_before_a_later_answer() {
    let server = || {
        let asked = Suspend::always().to(["role:director"]).deadline(5 * HOUR);
        let asked = asked.escalate(2 * HOUR, ["role:ceo"]);
        let approve = Step::map("approve", json!("resumed_by.id")).suspend(asked);
        Greenroom::new().workflow(Workflow::new("w").step(approve))
    };
    let ceo = || Answerer::new("eva").role("ceo");
    let case = Case::new("w")
        .answer_by(ceo(), "approve", HOUR, &yes())
        .expect_refusal("others are asked: role:director")
        .answer_by(ceo(), "approve", 3 * HOUR, &yes())
        .expect("result == 'eva'")
        .expect_took(3 * HOUR);
    let outcome = run(case.crash_everywhere().run(server)).unwrap();
    assert!(outcome.kills > 1, "{outcome:?}");
}

#[test]
fn answers_that_end_otherwise_than_planned_are_problems_of_the_case() {
    let late = "answer 1 (approve) is too late: the deadline has passed";
    let unanswered = "its status is error, expected completed: step approve: ";
    let case = || Case::new("w");
    let in_vain = "deadline passed; approve waited 2days for an answer and got none";
    let failed = format!("{unanswered}{in_vain}");
    let other = "the error is \"deadline passed\", without \"other\"; approve waited 2days for an answer and got none";
    let rows: [(Case, &[&str]); 8] = [
        (case(), &[&failed]),
        (case().expect_error("other"), &[other]),
        (
            case().answer("approve", HOUR, &sunday()),
            &["answer 1 (approve) is refused: the answer was refused: not on Sundays", unanswered],
        ),
        (
            case().answer("approve", HOUR, &yes()).expect_refusal("not on Sundays"),
            &["answer 1 (approve) is taken, expected a refusal with \"not on Sundays\""],
        ),
        (
            case().answer("approve", HOUR, &sunday()).expect_refusal("Mondays"),
            &[
                "answer 1 (approve) is refused: the answer was refused: not on Sundays, without \
                 \"Mondays\"",
                unanswered,
            ],
        ),
        (case().answer("approve", 49 * HOUR, &yes()), &[late, unanswered]),
        (
            case().answer("approve", HOUR, &yes()).answer("approve", HOUR, &yes()),
            &["approve never asked for its answer"],
        ),
        (case().expect_refusal("no"), &["expect_refusal: there is no answer before it"]),
    ];
    for (case, expected) in rows {
        let problems = problems_of(&case, guarded);
        assert_eq!(problems.len(), expected.len(), "{problems:?}");
        for (problem, expected) in problems.iter().zip(expected) {
            assert!(problem.starts_with(expected), "{expected}: {problems:?}");
        }
    }
}

/// The loser of a race withdraws its ask.
#[test]
fn an_answer_after_the_end_of_the_wait_is_too_late() {
    let ask = Block::new("ask").step(Step::map("ask", json!(1)).suspend(Suspend::always()));
    let late = Block::new("late").step(Step::sleep("sleep", HOUR));
    let flow = Workflow::new("w").step(Step::race("first", [ask, late]));
    let server = move || Greenroom::new().workflow(flow.clone());
    let problems = problems_of(&Case::new("w").answer("ask", 2 * HOUR, &json!(1)), &server);
    assert_eq!(problems, ["answer 1 (ask) is too late: the wait has ended before"]);
}

#[test]
fn tests_in_files_name_who_answers_and_what_is_refused() {
    let text = "[[workflows.w.steps]]\nid = \"a\"\nmap = \"resumed_by.id\"\n\
                suspend = { to = [\"role:lead\"] }\n\
                [[workflows.w.tests]]\nname = \"leads decide\"\n\
                answers = [\n\
                { step = \"a\", data = 1, by = \"ann\", refused = \"others are asked\" },\n\
                { step = \"a\", after = \"1h\", data = 1, by = { user = \"bob\", roles = [\"lead\"] } }]\n\
                expect = { result = \"result == 'bob'\", took = \"1h\" }\ncrash_everywhere = true\n\
                [[workflows.w.tests]]\nname = \"all decide\"\n\
                answers = [{ step = \"a\", data = 1, by = { user = \"bob\" } }]\n\
                expect = { status = \"suspended\" }\n";
    let server = || Greenroom::over(Config::parse(text, "c.toml").unwrap());
    let tested = run(run_configured(server, ""));
    assert_eq!(tested.len(), 2);
    assert_eq!(tested[0].result.as_ref().unwrap().status, Status::Completed);
    let Problems(problems) = tested[1].result.as_ref().unwrap_err();
    assert_eq!(*problems, ["answer 1 (a) is refused: others are asked: role:lead"]);
}
