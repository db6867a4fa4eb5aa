//! Cases that wait because a compensation failed.

use super::*;

/// A step that holds a seat, and whose compensation fails.
const HOLD: &str = "id = \"hold\"\nrun = \"hold\"\n\
                    compensate = { command = { argv = [\"/bin/true\", \"{{ data.id }}\"] } }\n";

/// Returns the problems of the only test of a workflow whose first step holds a seat.
fn problems_of_trip(last: &str, test: &str) -> Vec<String> {
    problems_of_text(&format!("[[workflows.trip.steps]]\n{HOLD}{last}"), test)
}

/// Returns the problems of the only test of a workflow in which a step holds a seat.
fn problems_of_text(steps: &str, test: &str) -> Vec<String> {
    let text = format!(
        "{steps}[[workflows.trip.tests]]\nname = \"t\"\nmocks.hold = {{ output = {{}} }}\n{test}"
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &text).unwrap();
    let server = || Greenroom::over(Config::load_open(file.path()).unwrap());
    let tested = run(run_configured(server, "")).into_iter().next().unwrap();
    tested.result.map_or_else(|Problems(problems)| problems, |_| Vec::new())
}

#[test]
fn a_wait_for_help_with_a_compensation_shows_the_failures_before_it() {
    let undone = "hold:compensate failed: argv[1]: `data.id` is undefined in `{{ data.id }}`";
    let pay = "[[workflows.trip.steps]]\nid = \"pay\"\nmap = \"steps.hold.id\"\n";
    let inside = "[[workflows.trip.steps]]\nid = \"both\"\ntype = \"andAll\"\n\
                  blocks = [\"x\", \"y\"]\n\
                  [[workflows.trip.blocks.x]]\nid = \"pay\"\nmap = \"steps.hold.id\"\n\
                  [[workflows.trip.blocks.y]]\nid = \"other\"\nmap = 1\n";
    let handled = "[[workflows.trip.steps]]\nid = \"look\"\nmap = \"steps.hold.no\"\n\
                   on_error = { value = 1 }\n";
    let handled_outside = "[[workflows.trip.steps]]\nid = \"looks\"\ntype = \"andAll\"\n\
                           blocks = [\"z\"]\non_error = \"ignore\"\n\
                           [[workflows.trip.blocks.z]]\nid = \"look\"\nmap = \"steps.hold.no\"\n";
    let handled_inside =
        inside.replace("map = 1", "map = \"steps.hold.no\"\non_error = \"ignore\"");
    let race = "[[workflows.trip.steps]]\nid = \"first\"\ntype = \"andRace\"\n\
                blocks = [\"z\", \"o\"]\n\
                [[workflows.trip.blocks.z]]\nid = \"look\"\nmap = \"steps.hold.no\"\n\
                [[workflows.trip.blocks.o]]\nid = \"one\"\nmap = 1\n";
    let rows = [
        (handled.to_owned() + pay, "pay failed: undefined value in `steps.hold.id`"),
        (handled_outside.to_owned() + pay, "pay failed: undefined value in `steps.hold.id`"),
        (handled_inside, "both/x/pay failed: undefined value in `steps.hold.id`"),
        (race.to_owned() + pay, "pay failed: undefined value in `steps.hold.id`"),
    ];
    let rows = rows.into_iter().chain([
        (pay.to_owned(), "pay failed: undefined value in `steps.hold.id`"),
        (inside.to_owned(), "both/x/pay failed: undefined value in `steps.hold.id`"),
        (
            "[workflows.trip]\nresult = \"steps.hold.id\"\n".to_owned(),
            "result: undefined value in `steps.hold.id`",
        ),
    ]);
    for (last, failed) in rows {
        let of_status = format!(
            "its status is suspended, expected error: {failed}: {undone}: hold:compensate waits \
             for an answer"
        );
        let found = problems_of_trip(&last, "expect = { status = \"error\" }\n");
        assert_eq!(found, [of_status.as_str()]);
        let of_error = "it has not ended; expected the error \"no\"";
        let found = problems_of_trip(&last, "expect = { error = \"no\" }\n");
        assert_eq!(found, [of_status.as_str(), of_error]);
    }
}

#[test]
fn a_compensation_that_a_person_skipped_has_run() {
    let rest = "[[workflows.trip.steps]]\nid = \"maybe\"\ntype = \"andWhen\"\nwhen = \"false\"\nblock = \"b\"\n\
                [[workflows.trip.blocks.b]]\nid = \"inner\"\nmap = 1\n\
                [[workflows.trip.steps]]\nid = \"pay\"\nmap = \"steps.hold.id\"\n";
    let answers = "answers = [{ step = \"hold:compensate\", data = { action = \"skip\" } }]\n";
    let expected = "error = \"undefined\"";
    let ran = "ran = [\"hold\", \"pay\", \"hold:compensate\"]";
    for (expect, problems) in [
        (format!("{expected}, {ran}, not_ran = [\"maybe\", \"inner\"]"), vec![]),
        (
            format!("{expected}, ran = [\"maybe\"], not_ran = [\"hold:compensate\"]"),
            vec!["step maybe does not run", "step hold:compensate runs"],
        ),
    ] {
        let test = format!("{answers}expect = {{ {expect} }}\n");
        assert_eq!(problems_of_trip(rest, &test), problems);
    }
}

#[test]
fn the_ask_of_a_compensation_in_a_block_has_several_names() {
    let steps = format!(
        "[[workflows.trip.steps]]\nid = \"both\"\ntype = \"andAll\"\nblocks = [\"x\"]\n\
         [[workflows.trip.blocks.x]]\n{HOLD}\
         [[workflows.trip.steps]]\nid = \"pay\"\nmap = \"steps.both[0].id\"\n"
    );
    for name in ["hold", "hold:compensate", "both/x/hold:compensate"] {
        let answer = format!("{{ step = \"{name}\", data = {{ action = \"skip\" }} }}");
        let test = format!("answers = [{answer}]\nexpect = {{ error = \"undefined\" }}\n");
        assert_eq!(problems_of_text(&steps, &test), [""; 0], "{name}");
    }
    let other = "answers = [{ step = \"both:compensate\", data = { action = \"skip\" } }]\n\
                 expect = { status = \"suspended\" }\n";
    assert_eq!(problems_of_text(&steps, other), ["both:compensate never asked for its answer"]);
}
