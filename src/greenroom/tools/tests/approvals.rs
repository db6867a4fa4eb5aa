//! Approvals and warnings, alike for a tool of a file, of Rust code, and of one that is approved
//! afterwards.

use super::*;

const DEADLINE: Duration = Duration::from_secs(60);

fn function() -> Tool {
    Tool::function("t", "d", order(), |it, _| async { Ok(it) })
}

fn agent() -> Tool {
    Tool::agent("t", "d", "clerk").parameters(order())
}

#[test]
fn every_way_to_an_approval_has_the_same_checks() {
    let when = || Approval::when("args.id != ''").unwrap();
    let to = vec!["user:a".parse().unwrap(); 33];
    let rows = [
        (when().deadline(Duration::ZERO), "", "deadline: must be longer than 0ms"),
        (
            when().on_timeout(OnTimeout::Approve),
            "on_timeout = \"approve\"",
            "on_timeout: needs a `deadline` beside it",
        ),
        (
            when().on_timeout(OnTimeout::Refuse),
            "on_timeout = \"refuse\"",
            "on_timeout: needs a `deadline` beside it",
        ),
        (when().reason("").unwrap(), "reason = \"\"", "reason: must not be empty"),
        (
            when().reason("{{ arg.id }}").unwrap(),
            "reason = \"{{ arg.id }}\"",
            "reason: `arg` is not in scope; in scope: args, context, user; did you mean args?",
        ),
        (when().to(to), "", "to: has more than 32 entries"),
    ];
    for (approval, lines, expected) in rows {
        let refused = [format!("tool t: approval.{expected}")];
        for tool in [function, agent] {
            let within = known().define_tool(tool().approval(approval.clone()));
            let mut found = problems(within);
            // a refused tool is missing where it is used
            found.retain(|problem| !problem.starts_with("agent desk: tool t is not configured"));
            assert_eq!(found, refused);
            let afterwards = known().define_tool(tool()).approval("t", approval.clone());
            assert_eq!(problems(afterwards), refused);
        }
        if lines.is_empty() {
            continue;
        }
        let text = format!(
            "{DEFINED}[tools.t]\ndescription = \"d\"\nkind = \"agent\"\nagent = \"clerk\"\n{ORDER}\
             [tools.t.approval]\n{lines}\n"
        );
        let found = Config::parse(&text, "c.toml").unwrap_err();
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with(&format!(": tools.t.approval.{expected}")), "{found:?}");
    }
}

#[test]
fn an_approval_of_a_refused_tool_is_not_a_mistake_of_its_own() {
    let refused = || Config::parse(DEFINED, "c.toml").map(Greenroom::over).unwrap();
    let refused = || refused().define_tool(Tool::agent("t", "", "clerk"));
    let of_tool = "tool t: description: must not be empty".to_owned();
    assert_eq!(
        problems(refused().approval("t", Approval::always())),
        std::slice::from_ref(&of_tool)
    );
    assert_eq!(
        problems(refused().approval("t", Approval::always().deadline(Duration::ZERO))),
        [of_tool, "tool t: approval.deadline: must be longer than 0ms".to_owned()]
    );
}

fn warnings(greenroom: Greenroom) -> Vec<String> {
    let (config, _) = greenroom.checked().unwrap();
    config.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn roles_that_no_caller_has_are_warned_of() {
    let asked = || Approval::always().to(["role:desk".parse().unwrap()]).deadline(DEADLINE);
    let why = "no caller can answer this: roles come with tokens, and there is no [auth]";
    let of_tool = [format!("tool t: warning: approval.to: {why}")];
    for tool in [function, agent] {
        assert_eq!(warnings(known().define_tool(tool().approval(asked()))), of_tool);
        assert_eq!(warnings(known().define_tool(tool()).approval("t", asked())), of_tool);
    }
    let spaced = Approval::always().to(["role:desk ".parse().unwrap(), "user:a".parse().unwrap()]);
    let found = warnings(known().define_tool(function().approval(spaced)));
    assert!(
        found[0].starts_with("tool t: warning: approval.to.0: the role has spaces"),
        "{found:?}"
    );
    let suspend = Suspend::always().to(["role:desk"]).deadline(DEADLINE);
    let suspend = suspend.escalate(DEADLINE / 2, ["role:boss", "!self"]);
    let inside = Block::new("b").step(Step::map("b", json!(1)).suspend(suspend));
    let asks = Workflow::new("asks").step(Step::when("if", "input", inside));
    let expected = ["to", "escalate.to"]
        .map(|key| format!("workflow asks: warning: steps.b.suspend.{key}: {why}"));
    assert_eq!(warnings(known().define_tool(function()).workflow(asks)), expected);
}

#[test]
fn secrets_in_plain_text_are_warned_of() {
    let post = |value: &str| Http::post("https://a.example").header("Authorization", value);
    let tool = |value: &str| Tool::http("t", "d", post(value)).parameters(order());
    let says = "looks like a secret in plain text; name an environment variable, as \
                \"secret:NAME\" or \"Bearer secret:NAME\"";
    let found = warnings(known().define_tool(tool("Bearer abc")));
    assert_eq!(found, [format!("tool t: warning: headers.Authorization: {says}")]);
    let step = |value: &str| {
        let call = Workflow::new("calls").step(Step::then("a", http(post(value))));
        known().define_tool(function()).workflow(call)
    };
    let expected = format!("workflow calls: warning: steps.a.http.headers.authorization: {says}");
    assert_eq!(warnings(step("Bearer abc")), [expected]);
    for value in ["Bearer secret:CARGO_PKG_NAME", "Bearer {{ context.token }}"] {
        assert_eq!(warnings(step(value)), Vec::<String>::new());
        assert_eq!(warnings(known().define_tool(tool(value))), Vec::<String>::new());
    }
}
