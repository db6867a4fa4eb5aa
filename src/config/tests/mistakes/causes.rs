//! Mistakes whose message says what to write, and which have no others in their wake.

use crate::config::tests::problems_of;

#[track_caller]
fn rows(rows: &[(&str, &[&str])]) {
    for (text, expected) in rows {
        let problems = problems_of(text);
        let problems: Vec<_> =
            problems.iter().filter_map(|line| line.strip_prefix("c.toml:")).collect();
        assert_eq!(problems, *expected, "{text}");
    }
}

#[test]
fn a_refused_value_is_not_also_missing() {
    const STEP: &str = "[[workflows.w.steps]]\nid = \"a\"\nmap = 1\n";
    rows(&[
        (
            &format!("{STEP}suspend = {{ deadline = 48, on_timeout = {{ resume = 1 }} }}\n"),
            &["4:24: workflows.w.steps.a.suspend.deadline: must be a duration such as \"500ms\", \
               \"3s\" or \"48h\", not an integer"],
        ),
        (
            &format!(
                "{STEP}suspend = {{ deadline = \"1h\", to = \"role:lead\", escalate = {{ after = \"5m\", \
                 to = [\"user:x\"] }} }}\n"
            ),
            &["4:35: workflows.w.steps.a.suspend.to: must be an array, not a string"],
        ),
        // nothing else is wrong with it
        (
            &format!(
                "{STEP}suspend = {{ deadline = \"1h\", escalate = {{ after = \"5m\", to = [\"user:x\"] \
                 }} }}\n"
            ),
            &["4:41: workflows.w.steps.a.suspend.escalate: requires a user or a role in `to`"],
        ),
        (
            "[workflows.w]\ncompensate_on_cancel = true\n[[workflows.w.steps]]\nid = \"a\"\n\
             command = { argv = [\"/bin/true\"] }\ncompensate = { run = 3 }\n",
            &["6:22: workflows.w.steps.a.compensate.run: must be a string, not an integer"],
        ),
    ]);
}

#[test]
fn values_of_another_type_get_an_example() {
    let expected = "must be a duration such as \"30d\", or \"forever\"";
    rows(&[
        (
            "[retention]\nexecutions = 30\n",
            &[&format!("2:14: retention.executions: {expected}, not an integer")],
        ),
        (
            "[retention]\nexecutions = \"never\"\n",
            &[&format!("2:14: retention.executions: {expected}")],
        ),
        (
            "[[faces.openai]]\nagents = \"*\"\n",
            &["1:1: faces.openai: must be a table, not an array: write [faces.openai]"],
        ),
        ("[faces]\nopenai = [1]\n", &["2:10: faces.openai: must be a table, not an array"]),
    ]);
}

#[test]
fn one_header_of_a_table_among_those_of_an_array_is_one_error() {
    let (item, table) = ("[[workflows.w.steps]]", "  [ workflows.w.steps ] # the second");
    let step = |header: &str, id: &str| format!("{header}\nid = \"{id}\"\nmap = 1\n");
    let said = "is written [workflows.w.steps] here and [[workflows.w.steps]] elsewhere: write \
                [[workflows.w.steps]] for each item of an array";
    for (headers, place) in [
        ([item, table, item, item], "4:3"),
        ([table, item, item, item], "1:3"),
        ([item, item, item, table], "10:3"),
    ] {
        let text: String =
            headers.iter().zip(["a", "b", "c", "d"]).map(|(it, id)| step(it, id)).collect();
        rows(&[(&text, &[&format!("{place}: {said}")])]);
    }
    rows(&[("[docs]\n[docs]\n", &["2:2: duplicate key"])]);
}

#[test]
fn keys_with_other_names_elsewhere_get_their_name() {
    let agent = |key: &str| {
        format!("[models.m]\nprovider = \"mock\"\n[agents.a]\nmodel = \"m\"\n{key} = \"Help.\"\n")
    };
    rows(&[
        (&agent("instructions"), &[]),
        (&agent("system"), &["5:1: agents.a.system: unknown key; did you mean instructions?"]),
        ("[store]\npath = \"a.db\"\n", &["2:1: store.path: unknown key; did you mean url?"]),
    ]);
}

#[test]
fn roles_under_the_key_role_are_warned_of_where_something_is_for_that_role() {
    let hash = "0f".repeat(32);
    let key = |user: &str| {
        format!("[[auth.api_keys]]\nid = \"k\"\nhash = \"sha256:{hash}\"\nuser = {{ {user} }}\n")
    };
    let (lone, wanted) = (key("role = \"lead\""), "[inbox]\nforce_roles = [\"lead\"]\n");
    let said = "warning: auth.api_keys[0].user.role: does not give the role lead: roles are in \
                `roles`, as in roles = [\"lead\"]";
    let at = |place: &str| format!("{place}: {said}");
    let read = |expression: &str| {
        format!("[workflows.w]\n[[workflows.w.steps]]\nid = \"a\"\nmap = {expression}\n")
    };
    let rule = "[[auth.rules]]\nroute = \"POST /updates\"\nroles = [\"lead\"]\n";
    rows(&[
        // an expression may read it, also one that is passed all of a profile
        (&lone, &[]),
        (&(lone.clone() + &read("\"context.user.role\"")), &[]),
        (&(lone.clone() + &read("\"context.user\"")), &[]),
        (&(lone.clone() + wanted), &[&at("4:10")]),
        (&(lone.clone() + rule), &[&at("4:10")]),
        (&format!("[auth.ownership]\nroles = [\"lead\"]\n{lone}"), &[&at("6:10")]),
        (&(key("role = [\"a\", \"lead\"]") + wanted), &[&at("4:10")]),
        (&(lone.clone() + wanted + &read("\"input.role\"")), &[&at("4:10")]),
        (&(lone.clone() + wanted + &read("\"context.user.role\"")), &[]),
        (&(lone.clone() + wanted + &read("{ a = [\"context.user['role']\"] }")), &[]),
        (&(key("role = \"lead\", roles = [\"lead\"]") + wanted), &[]),
        (&(key("role = \"clerk\"") + wanted), &[]),
        (&(key("role = 1") + wanted), &[]),
    ]);
}

#[test]
fn roles_under_the_key_role_are_warned_of_where_they_are_asked() {
    let key = format!(
        "[[auth.api_keys]]\nid = \"k\"\nhash = \"sha256:{}\"\nuser = {{ role = \"lead\" }}\n",
        "0f".repeat(32)
    );
    let asked = "[workflows.w]\n[[workflows.w.steps]]\nid = \"a\"\nmap = 1\n\
                 suspend = { to = [\"role:lead\"], deadline = \"1h\" }\n";
    rows(&[(
        &(key + asked),
        &[
            "4:10: warning: auth.api_keys[0].user.role: does not give the role lead: roles are in \
             `roles`, as in roles = [\"lead\"]",
            "9:18: warning: workflows.w.steps.a.suspend.to: no caller can answer this: no key in \
             [[auth.api_keys]] has this user or role",
        ],
    )]);
}
