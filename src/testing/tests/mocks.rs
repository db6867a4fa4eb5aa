//! Tests of mocks that fail.

use super::*;
use crate::builder::{Mapping, OnError, tool};
use crate::step::StepError;

/// A workflow whose step calls a tool, up to three times, and gives the kind of its failure.
fn paying() -> Greenroom {
    let kind = OnError::Value(Mapping(json!("error.kind")));
    let retry = Retry::attempts(3).delay(HOUR / 60);
    let pay = Step::then("pay", tool("bank")).retry(retry).on_error(kind);
    let (about, any) = ("Pays", json!({ "type": "object" }));
    Greenroom::new()
        .tool("bank", about, any, |_, _| async { Ok(json!(1)) })
        .workflow(Workflow::new("w").input_schema(json!({ "type": "object" })).step(pay))
}

#[test]
fn mocks_of_tools_fail_like_tools() {
    let error = || StepError::new("no cover");
    let minutes = |count: u32| count * HOUR / 60;
    let rows: [(StepError, &str, usize, Duration); 4] = [
        (error(), "tool", 3, minutes(1 + 2)),
        (error().kind("http"), "http", 3, minutes(1 + 2)),
        (error().retry_after(minutes(30)), "tool", 3, minutes(30 + 30)),
        (StepError::terminal("no cover").kind("declined"), "declined", 1, Duration::ZERO),
    ];
    for (error, kind, calls, took) in rows {
        let mock = Mock::failure(error);
        let case = Case::new("w").input(&json!({})).mock_tool("bank", mock.clone());
        let case = case.expect(format!("result == '{kind}'")).expect_took(took);
        assert_eq!(problems_of(&case, paying), [""; 0], "{kind}");
        assert_eq!(mock.calls().len(), calls, "{kind}");
    }
}

#[test]
fn a_tool_that_fails_at_first_is_tried_again() {
    let mock = Mock::output("paid").failing(2, StepError::new("busy").kind("closed"));
    let case = Case::new("w").input(&json!({})).mock_tool("bank", mock).expect("result == 'paid'");
    assert_eq!(problems_of(&case, paying), [""; 0]);
}

#[test]
fn mocks_in_files_fail_as_they_say() {
    let text = "[[workflows.w.steps]]\nid = \"pay\"\nrun = \"bank\"\n\
                retry = { attempts = 3, on = \"error.kind == 'busy'\" }\n\
                on_error = { value = \"error.kind\" }\n\
                [[workflows.w.tests]]\nname = \"again\"\n\
                mocks.pay = { fail = { message = \"no\", kind = \"busy\" }, times = 2, output = 7 }\n\
                expect = { result = \"result == 7\" }\n\
                [[workflows.w.tests]]\nname = \"terminal\"\n\
                mocks.pay = { fail = { message = \"no\", kind = \"busy\", terminal = true }, times = 1, output = 7 }\n\
                expect = { result = \"result == 'busy'\" }\n\
                [[workflows.w.tests]]\nname = \"plain\"\nmocks.pay = { fail = \"no\" }\n\
                expect = { result = \"result == 'function'\" }\n";
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let server = || Greenroom::over(Config::load_open(file.path()).unwrap());
    for test in run(run_configured(server, "")) {
        assert!(test.result.is_ok(), "{}: {:?}", test.name, test.result);
    }
}
