//! Tests of names: wrong ones are refused before anything runs.

use super::*;

#[test]
fn names_that_are_not_there_are_refused() {
    let mock = || Mock::output(1);
    let scripted = || Arc::new(ScriptedModel::local([])) as _;
    let cases: &[(Case, &str)] = &[
        (
            case().mock_step("pya", mock()),
            "workflow expense has no step pya to mock; did you mean pay?",
        ),
        (
            case().mock_step("pay:compensate", mock()),
            "step pay of workflow expense has no compensation to mock",
        ),
        (
            case().mock_step_of("expens", "pay", mock()),
            "there is no workflow expens to mock; did you mean expense?",
        ),
        (case().mock_tool("bank", mock()), "there is no tool bank to mock"),
        (case().mock_model("large", scripted()), "there is no model large to mock"),
        (
            Case::new("expense"),
            "step pay of workflow expense runs the function bank.pay, which is not registered: \
             mock the step",
        ),
        (
            Case::new("expence").mock_step_of("expense", "pay", mock()),
            "there is no workflow expence; did you mean expense?",
        ),
        (
            case().answer("if-approved/paid/pya", HOUR, &1),
            "answer 1 (if-approved/paid/pya): there is no such step or tool; did you mean pay?",
        ),
        (
            case().answer("manger", HOUR, &1),
            "answer 1 (manger): there is no such step or tool; did you mean manager?",
        ),
        (
            case().expect_ran(["mangaer"]),
            "ran: workflow expense has no step mangaer; did you mean manager?",
        ),
        (
            case().expect_not_ran(["manager", "pya"]),
            "not_ran: workflow expense has no step pya; did you mean pay?",
        ),
        (
            case().expect_not_ran(["pay:compensate"]),
            "not_ran: step pay of workflow expense has no compensation",
        ),
        (
            case().expect_ran(["if-approved/paid/pay"]),
            "ran: workflow expense has no step if-approved/paid/pay; steps have their ids here: pay",
        ),
    ];
    for (case, problem) in cases {
        let problems = problems_of(case, server);
        assert!(problems.iter().any(|it| it.contains(problem)), "{problem}: {problems:?}");
    }
}

#[test]
fn nothing_runs_under_a_wrong_name() {
    let pay = Mock::output(json!(7));
    let case =
        case().mock_step("pay", pay.clone()).answer("manager", HOUR, &json!({ "approved": true }));
    let problems = problems_of(&case.expect_not_ran(["payy"]), server);
    assert_eq!(problems, ["not_ran: workflow expense has no step payy; did you mean pay?"]);
    assert_eq!(pay.calls(), []);
}

/// A parent with blocks and compensations, whose child asks.
fn nested() -> Greenroom {
    let asked = Step::map("approve", json!("resume")).suspend(Suspend::always());
    let book = Step::run("book", "book").compensate(Compensation::run("unbook"));
    let line = Block::new("line").step(asked).step(book);
    let child = Workflow::new("child").step(Step::for_each("lines", json!([1]), line));
    let inner = Block::new("inner").step(Step::workflow("order", "child"));
    let race = Step::race("first", [Block::new("work").step(Step::when("if", "true", inner))]);
    Greenroom::new().workflow(child).workflow(Workflow::new("parent").step(race))
}

#[test]
fn steps_inside_blocks_and_of_children_are_no_wrong_names() {
    let case = || {
        let case = Case::new("parent").mock_step_of("child", "book", Mock::output(1));
        case.mock_step_of("child", "book:compensate", Mock::output(1))
    };
    for about in ["approve", "lines[0]/approve"] {
        let case = case().answer(about, HOUR, &1).expect_ran(["first", "if", "order"]);
        assert_eq!(problems_of(&case.expect_not_ran(["order:compensate"]), nested), [""; 0]);
    }
    let of_child = case().answer("approve", HOUR, &1).expect_ran(["book"]);
    let said =
        "ran: workflow parent has no step book; workflow child has one, in another execution";
    assert_eq!(problems_of(&of_child, nested), [said]);
}

#[test]
fn a_wrong_name_in_a_file_is_a_problem_of_its_test_alone() {
    let text = "[[workflows.w.steps]]\nid = \"pay\"\nmap = \"1\"\n\
                [[workflows.w.tests]]\nname = \"steps\"\nmocks.pya = { output = 1 }\n\
                [[workflows.w.tests]]\nname = \"others\"\n\
                mocks = { tools.bank = { output = 1 }, workflows.v.a = { output = 1 } }\n\
                [[workflows.w.tests]]\nname = \"expected\"\n\
                expect = { ran = [\"pay\"], not_ran = [\"pay:compensate\"] }\n\
                [[workflows.w.tests]]\nname = \"answered\"\n\
                answers = [{ step = \"pray\", data = 1 }]\n\
                [[workflows.w.tests]]\nname = \"right\"\nexpect = { ran = [\"pay\"] }\n";
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let server = || Greenroom::over(Config::load_open(file.path()).unwrap());
    let tested = run(run_configured(server, ""));
    let said: Vec<_> = tested
        .iter()
        .map(|it| {
            it.result.as_ref().map_or_else(|Problems(said)| said.join("; "), |_| String::new())
        })
        .collect();
    for (said, parts) in said.iter().zip([
        &[":6:13: workflows.w.tests[0].mocks.pya: must be one of pay; did you mean pay?"][..],
        &["mocks.tools.bank: tool bank is not configured", "mocks.workflows.v: workflow v is not"],
        &["tests[2].expect.not_ran[0]: must be one of pay"],
        &["answer 1 (pray): there is no such step or tool; did you mean pay?"],
        &[],
    ]) {
        assert!(parts.iter().all(|part| said.contains(part)), "{parts:?}: {said}");
        assert_eq!(said.is_empty(), parts.is_empty(), "{said}");
    }
}
