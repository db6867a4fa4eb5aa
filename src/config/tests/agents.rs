//! `[agents.*]`: values and refusals.

use std::time::Duration;

use greenroom_actors::agent::{Budget, Choice};

use super::refusals::refused;
use crate::config::Config;

const MODEL: &str = "[models.m]\nprovider = \"mock\"\n";

#[test]
fn all_keys_of_an_agent_are_read() {
    let config = Config::parse(
        &format!(
            "{MODEL}[tools.t]\nkind = \"agent\"\nagent = \"b\"\ndescription = \"d\"\n\
             [agents.a]\nmodel = \"m\"\ntools = [\"t\"]\nsub_agents = [\"b\"]\nmax_steps = 3\n\
             budget = {{ tokens = 10, time = \"1s\", tool_calls = 2 }}\n\
             chat = {{ resumable = true }}\n\
             [agents.b]\nmodel = \"{{{{ context.model }}}}\"\ntools = \"context.tools\"\n\
             sub_agents = [\"a\"]\n"
        ),
        "c.toml",
    )
    .unwrap();
    let a = &config.agents["a"];
    assert_eq!(a.model.fixed().map(String::as_str), Some("m"));
    assert_eq!(a.tools.fixed().unwrap(), &["t"]);
    assert_eq!((&a.sub_agents, a.max_steps), (&vec!["b".to_owned()], Some(3)));
    let time = Some(Duration::from_secs(1));
    assert_eq!(a.budget, Budget { tokens: Some(10), time, tool_calls: Some(2) });
    assert!(a.is_resumable);
    let b = &config.agents["b"];
    assert!(matches!(&b.model, Choice::Source(source) if source == "{{ context.model }}"));
    assert!(matches!(&b.tools, Choice::Source(source) if source == "context.tools"));
    assert_eq!((b.max_steps, &b.budget, b.is_resumable), (None, &Budget::default(), false));
}

#[test]
fn one_tool_without_an_array_is_refused_with_the_array() {
    for written in ["price-of", "'price_of'", "x"] {
        let text = format!("{MODEL}[agents.a]\nmodel = \"m\"\ntools = \"{written}\"\n");
        let name = written.trim_matches('\'');
        let says = format!(
            "c.toml:5:9: agents.a.tools: is one name; write the array tools = [\"{name}\"]"
        );
        refused(&[(&text, &[&says])]);
    }
}

#[test]
fn mistakes_in_agents() {
    for (line, expected) in [
        ("tools = [\"x\"]", "5:10: agents.a.tools[0]: tool x is not configured"),
        (
            "tools = [\"ask_usr\"]",
            "5:10: agents.a.tools[0]: tool ask_usr is not configured; did you mean ask_user?",
        ),
        (
            "tools = \"[\"",
            "5:9: agents.a.tools: syntax error: unexpected end of input, expected expression in \
             `[`",
        ),
        (
            "tools = 3",
            "5:9: agents.a.tools: must be an array of names of tools, or an expression in a \
             string that returns one",
        ),
        (
            "sub_agents = [\"a\"]",
            "5:15: agents.a.sub_agents[0]: an agent cannot be its own sub-agent",
        ),
        ("sub_agents = [\"b\"]", "5:15: agents.a.sub_agents[0]: agent b is not configured"),
        ("max_steps = 0", "5:13: agents.a.max_steps: must be from 1 to 1000"),
        ("budget = { tokens = 0 }", "5:21: agents.a.budget.tokens: must be at least 1"),
        (
            "budget = { tool_call = 1 }",
            "5:12: agents.a.budget.tool_call: unknown key; did you mean tool_calls?",
        ),
        (
            "chat = { resumable = 1 }",
            "5:22: agents.a.chat.resumable: must be true or false, not an integer",
        ),
        (
            "chat = { resume = true }",
            "5:10: agents.a.chat.resume: unknown key; did you mean resumable?",
        ),
        (
            "tools = \"args.x\"",
            "5:9: agents.a.tools: `args` is not in scope; in scope: context, \
        user",
        ),
        (
            "instructions = \"{{ input }}\"",
            "5:16: agents.a.instructions: `input` is not in scope; in scope: context, user",
        ),
        (
            "instructions = \"{{ nope.x }}\"",
            "5:16: agents.a.instructions: `nope` is not in scope; in scope: context, user",
        ),
        ("memory = \"yes\"", "5:10: agents.a.memory: must be true or false, not a string"),
    ] {
        let text = format!("{MODEL}[agents.a]\nmodel = \"m\"\n{line}\n");
        refused(&[(&text, &[&format!("c.toml:{expected}")])]);
    }
    refused(&[
        (
            "[agents.a]\nmodel = \"{{ x\"\ninstructions = \"secret:KEY\"\n",
            &[
                "c.toml:2:9: agents.a.model: syntax error: unexpected end of input, expected end \
                 of variable block in `{{ x`",
                "c.toml:3:16: agents.a.instructions: `secret:KEY` is allowed in keys and headers \
                 only",
            ],
        ),
        (
            "[models.m]\nprovider = \"mock\"\n[agents.a]\nmodel = \"m\"\n\
             tools = [\"t\", \"t\"]\n[tools.t]\nkind = \"agent\"\nagent = \"a\"\n\
             description = \"d\"\n",
            &["c.toml:5:15: agents.a.tools[1]: tool t is named twice"],
        ),
    ]);
}

#[test]
fn templates_may_define_variables() {
    let text = format!(
        "{MODEL}[agents.a]\nmodel = \"m\"\ninstructions = \"{{% set tone = 'dry' %}}{{{{ tone }}}}\
         {{% for n in range(3) %}}{{{{ loop.index }}}}{{{{ n }}}}{{% endfor %}}{{{{ dict(a=user) }}}}\"\n"
    );
    assert_eq!(Config::parse(&text, "c.toml").map(drop), Ok(()));
}
