//! Mistakes in definitions of workflows, with place, message and suggestion.
//!
//! Rows are texts with their problems, which omit `c.toml:` and `workflows.w.`.

mod alternatives;
mod causes;
mod typical;
mod whole;

use super::problems_of;

/// A text and its problems.
type Row<'a> = (&'a str, &'a [&'a str]);

const BLOCK: &str = "[[workflows.w.blocks.x]]\nid = \"in_x\"\nmap = 1\n";

#[track_caller]
fn check(rows: &[Row<'_>], text_of: impl Fn(&str) -> String) {
    for (written, expected) in rows {
        let text = text_of(written);
        let problems = problems_of(&text).into_iter().map(|line| {
            let line = line.strip_prefix("c.toml:").map(str::to_owned);
            line.unwrap_or_default().replacen("workflows.w.", "", 1)
        });
        assert_eq!(problems.collect::<Vec<_>>(), *expected, "for:\n{text}");
    }
}

/// Checks rows that are lines of a step, from line 3.
#[track_caller]
fn of_a_step(rows: &[Row<'_>]) {
    check(rows, |lines| format!("[[workflows.w.steps]]\nid = \"a\"\n{lines}\n"));
}

/// Checks rows that are lines of a step beside a block x.
#[track_caller]
fn of_a_container(rows: &[Row<'_>]) {
    check(rows, |lines| format!("[[workflows.w.steps]]\nid = \"a\"\n{lines}\n{BLOCK}"));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn the_kind_of_a_step_and_its_keys() {
    of_a_step(&[
        (
            "mpa = 1",
            &[
                "1:1: steps.a: needs one of `map`, `run`, `http`, `command`, `tool`",
                "3:1: steps.a.mpa: unknown key; did you mean map?",
            ],
        ),
        (
            "type = \"andTehn\"\nmap = 1",
            &["3:8: steps.a.type: unknown type \"andTehn\"; did you mean andThen?"],
        ),
        (
            "type = \"AndThen\"\nmap = 1",
            &["3:8: steps.a.type: unknown type \"AndThen\"; did you mean andThen?"],
        ),
        ("type = 3\nmap = 1", &["3:8: steps.a.type: must be a string, not an integer"]),
        ("type = \"andWhen\"\nwhen = \"data\"", &["1:1: steps.a: key `block` is missing"]),
        ("type = \"andAll\"\nblocks = []", &["4:10: steps.a.blocks: must name at least one block"]),
        (
            "type = \"andAll\"\nblocks = [1]",
            &["4:11: steps.a.blocks[0]: must be a string, not an integer"],
        ),
        ("type = \"andBranch\"", &["1:1: steps.a: key `cases` is missing"]),
        ("type = \"andBranch\"\ncases = []", &["4:9: steps.a.cases: needs at least one case"]),
        (
            "type = \"andBranch\"\ncases = {}",
            &["4:9: steps.a.cases: must be an array, not a table"],
        ),
        ("type = \"andSleep\"", &["1:1: steps.a: key `duration` is missing"]),
        (
            "type = \"andSleep\"\nduration = 3",
            &["4:12: steps.a.duration: must be a duration such as \"500ms\", \"3s\" or \
                 \"48h\", not an integer"],
        ),
        (
            "type = \"andSleep\"\nduration = \"-3s\"",
            &["4:12: steps.a.duration: must be a duration such as \"500ms\", \"3s\" or \"48h\""],
        ),
        (
            "type = \"andSleep\"\nduration = \"3 sceonds\"",
            &["4:12: steps.a.duration: must be a duration such as \"500ms\", \"3s\" or \"48h\""],
        ),
        ("type = \"andSleepUntil\"", &["1:1: steps.a: key `until` is missing"]),
        (
            "type = \"andSleepUntil\"\nduration = \"3s\"",
            &[
                "1:1: steps.a: key `until` is missing",
                "4:1: steps.a.duration: key `duration` does not belong to andSleepUntil",
            ],
        ),
        (
            "type = \"andSleepUntil\"\nuntil = \"2026-01-01T00:00:00Z\"",
            &["4:9: steps.a.until: must be an expression, e.g. \
                 \"'2026-01-01T00:00:00Z'\""],
        ),
        (
            "type = \"andSleepUntil\"\nuntil = 2026-01-01T00:00:00Z",
            &["4:9: steps.a.until: must be an expression, e.g. \
                 \"'2026-01-01T00:00:00Z'\""],
        ),
        ("type = \"andMap\"", &["1:1: steps.a: key `map` is missing"]),
        (
            "type = \"andMap\"\nrun = \"f\"",
            &[
                "1:1: steps.a: key `map` is missing",
                "4:1: steps.a.run: key `run` does not belong to andMap",
            ],
        ),
        (
            "type = \"andAgent\"\nagnet = \"x\"",
            &[
                "1:1: steps.a: key `agent` is missing",
                "4:1: steps.a.agnet: unknown key; did you mean agent?",
            ],
        ),
        ("type = \"andAgent\"\nagent = \"\"", &["4:9: steps.a.agent: must not be empty"]),
        (
            "type = \"andAgent\"\nagent = \"absent\"\nprompt = \"{{ data\"\nschema = 3",
            &[
                "4:9: steps.a.agent: agent absent is not configured",
                "5:10: steps.a.prompt: syntax error: unexpected end of input, expected end of \
                 variable block in `{{ data`",
                "6:10: steps.a.schema: must be a JSON Schema, not an integer",
            ],
        ),
        (
            "type = \"andAgent\"\nagent = \"absent\"\nprompt = \"secret:KEY\"",
            &[
                "4:9: steps.a.agent: agent absent is not configured",
                "5:10: steps.a.prompt: `secret:KEY` is allowed in keys and headers only",
            ],
        ),
        (
            "type = \"andWorkflow\"\nworkflow = \"v\"",
            &["4:12: steps.a.workflow: workflow v is not configured"],
        ),
        ("type = \"andWorkflow\"\ninput = 1", &["1:1: steps.a: key `workflow` is missing"]),
        ("name = 3\nmap = 1", &["3:8: steps.a.name: must be a string, not an integer"]),
    ]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn containers() {
    of_a_container(&[
        ("type = \"andWhen\"\nblock = \"x\"", &["1:1: steps.a: key `when` is missing"]),
        (
            "type = \"andWhen\"\nwhen = 3\nblock = \"x\"",
            &["4:8: steps.a.when: must be an expression in a string, not an integer"],
        ),
        (
            "type = \"andWhen\"\nwhen = \"data\"\nblocks = [\"x\"]",
            &[
                "1:1: steps.a: key `block` is missing",
                "5:1: steps.a.blocks: key `blocks` does not belong to andWhen",
            ],
        ),
        (
            "type = \"andAll\"\nblock = \"x\"",
            &[
                "1:1: steps.a: key `blocks` is missing",
                "4:1: steps.a.block: key `block` does not belong to andAll",
            ],
        ),
        (
            "type = \"andAll\"\nblocks = \"x\"",
            &["4:10: steps.a.blocks: must be an array, not a string"],
        ),
        (
            "type = \"andRace\"\nblocks = [\"x\", \"x\"]",
            &["4:16: steps.a.blocks[1]: block x is already used by the step at line 4"],
        ),
        (
            "type = \"andBranch\"\ncases = [{ block = \"x\" }]",
            &["4:10: steps.a.cases[0]: key `when` is missing"],
        ),
        (
            "type = \"andBranch\"\ncases = [{ whn = \"data\", block = \"x\" }]",
            &[
                "4:10: steps.a.cases[0]: key `when` is missing",
                "4:12: steps.a.cases[0].whn: unknown key; did you mean when?",
            ],
        ),
        (
            "type = \"andBranch\"\ncases = [{ when = \"data\", block = \"x\" }]\ndefault = \"y\"",
            &["5:11: steps.a.default: there is no block y"],
        ),
        (
            "type = \"andBranch\"\ncases = [{ when = \"(\", block = \"x\" }]",
            &["4:19: steps.a.cases[0].when: syntax error: unexpected end of input, expected \
                 expression in `(`"],
        ),
        (
            "type = \"andDoWhile\"\nwhen = \"data\"\nblock = \"x\"",
            &["1:1: steps.a: key `max_iterations` is missing: a loop needs a bound"],
        ),
        (
            "type = \"andDoUntil\"\nuntil = \"data\"\nblock = \"x\"\nmax_iterations = 0",
            &[
                "1:1: steps.a: key `when` is missing",
                "4:1: steps.a.until: key `until` does not belong to andDoUntil; did you mean when?",
                "6:18: steps.a.max_iterations: must be from 1 to 100000",
            ],
        ),
        (
            "type = \"andDoUntil\"\nwhen = \"data\"\nblock = \"x\"\nmax_iterations = -1",
            &["6:18: steps.a.max_iterations: must be from 1 to 100000"],
        ),
        (
            "type = \"andDoUntil\"\nwhen = \"data\"\nblock = \"x\"\nmax_iterations = \"3\"",
            &["6:18: steps.a.max_iterations: must be a whole number, not a string"],
        ),
        (
            "type = \"andDoUntil\"\nwhen = \"data\"\nblock = \"x\"\nmax_iteration = 3",
            &[
                "1:1: steps.a: key `max_iterations` is missing: a loop needs a bound",
                "6:1: steps.a.max_iteration: unknown key; did you mean max_iterations?",
            ],
        ),
        (
            "type = \"andDoWhile\"\nwhile = \"data\"\nblock = \"x\"\nmax_iterations = 3",
            &[
                "1:1: steps.a: key `when` is missing",
                "4:1: steps.a.while: unknown key; did you mean when?",
            ],
        ),
        (
            "type = \"andWhen\"\nwhen = \"data\"\nblock = \"xx\"",
            &[
                "5:9: steps.a.block: there is no block xx; did you mean x?",
                "6:1: blocks.x: no step uses this block",
            ],
        ),
        ("type = \"andForEach\"\nblock = \"x\"", &["1:1: steps.a: key `items` is missing"]),
        (
            "type = \"andForEach\"\nitems = \"data\"\nblock = \"x\"\nconcurrency = 0",
            &["6:15: steps.a.concurrency: must be from 1 to 1000"],
        ),
        (
            "type = \"andForEach\"\nitems = 3\nblock = \"x\"",
            &["4:9: steps.a.items: must be an array"],
        ),
        (
            "type = \"andForEach\"\nitem = \"data\"\nblock = \"x\"",
            &[
                "1:1: steps.a: key `items` is missing",
                "4:1: steps.a.item: unknown key; did you mean items?",
            ],
        ),
    ]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn modifiers_of_a_step() {
    of_a_step(&[
        ("map = 1\nretri = {}", &["4:1: steps.a.retri: unknown key; did you mean retry?"]),
        (
            "map = 1\non_error = \"ingore\"",
            &["4:12: steps.a.on_error: must be \"fail\", \"ignore\" or { value = ... }; did \
                 you mean ignore?"],
        ),
        (
            "map = 1\non_error = { vlaue = 1 }",
            &[
                "4:12: steps.a.on_error: key `value` is missing",
                "4:14: steps.a.on_error.vlaue: unknown key; did you mean value?",
            ],
        ),
        (
            "map = 1\non_error = 3",
            &["4:12: steps.a.on_error: must be \"fail\", \"ignore\" or { value = ... }"],
        ),
        (
            "map = 1\nretry = { attempts = 3, dely = \"1s\" }",
            &["4:25: steps.a.retry.dely: unknown key; did you mean delay?"],
        ),
        (
            "map = 1\nretry = 3",
            &["4:9: steps.a.retry: must be a table, not an integer: { attempts = 3 }"],
        ),
        (
            "map = 1\nretry = { delay = \"-1s\", max_delay = 3 }",
            &[
                "4:19: steps.a.retry.delay: must be a duration such as \"500ms\", \"3s\" or \
                 \"48h\"",
                "4:38: steps.a.retry.max_delay: must be a duration such as \"500ms\", \"3s\" or \
                 \"48h\", not an integer",
            ],
        ),
        (
            "map = 1\ntimeout = 3",
            &["4:11: steps.a.timeout: must be a duration such as \"500ms\", \"3s\" or \"48h\", \
                 not an integer"],
        ),
        ("map = 1\nsuspend = true", &["4:11: steps.a.suspend: must be a table, not a boolean"]),
        (
            "map = 1\nsuspend = { whne = \"data\", deadline = \"1h\" }",
            &["4:13: steps.a.suspend.whne: unknown key; did you mean when?"],
        ),
        (
            "map = 1\nsuspend = { deadline = \"0s\" }",
            &["4:24: steps.a.suspend.deadline: must be longer than 0ms"],
        ),
        (
            "map = 1\nsuspend = { on_timeout = \"fial\", deadline = \"1h\" }",
            &["4:26: steps.a.suspend.on_timeout: must be \"fail\" or { resume = ... }; did you \
                 mean fail?"],
        ),
        (
            "map = 1\nsuspend = { when = \"data\", deadlin = \"1h\" }",
            &[
                "4:11: warning: steps.a.suspend: has no deadline",
                "4:28: steps.a.suspend.deadlin: unknown key; did you mean deadline?",
            ],
        ),
        (
            "map = 1\nsuspend = { deadline = \"1h\", to = [\"user:a\", \"manager\", \"{{ x \"] }",
            &[
                "4:46: steps.a.suspend.to[1]: must be user:<id>, role:<name> or !self",
                "4:57: steps.a.suspend.to[2]: syntax error: unexpected end of input, expected end \
                 of variable block in `{{ x`",
            ],
        ),
        (
            "map = 1\nsuspend = { deadline = \"1h\", to = \"role:a\", remind = [\"1h\", 3] }",
            &[
                "4:35: steps.a.suspend.to: must be an array, not a string",
                "4:55: steps.a.suspend.remind[0]: must be shorter than the `deadline`",
                "4:61: steps.a.suspend.remind[1]: must be a duration such as \"500ms\", \"3s\" or \
                 \"48h\", not an integer",
            ],
        ),
        (
            "map = 1\nsuspend = { deadline = \"1h\", escalate = { after = \"2h\", too = [\"role:b\"] } }",
            &[
                "4:41: steps.a.suspend.escalate: key `to` is missing",
                "4:57: steps.a.suspend.escalate.too: unknown key; did you mean to?",
            ],
        ),
        (
            "map = 1\nsuspend = { deadline = \"1h\", escalate = { after = \"2h\", to = [\"b\"] } }",
            &[
                "4:41: steps.a.suspend.escalate: requires a user or a role in `to`",
                "4:51: steps.a.suspend.escalate.after: must be shorter than the `deadline`",
                "4:63: steps.a.suspend.escalate.to[0]: must be user:<id>, role:<name> or !self",
            ],
        ),
        (
            "map = 1\ninput_schema = { type = \"strng\" }",
            &["4:16: steps.a.input_schema: schema at /type: \"strng\" is not a type; expected \
             array, \
                 boolean, \
                 integer, null, number, object or string"],
        ),
        (
            "map = 1\noutput_schema = [1]",
            &["4:17: steps.a.output_schema: must be a JSON Schema, not an array"],
        ),
        (
            "map = 1\nresume_schema = \"no.json\"",
            &["4:17: steps.a.resume_schema: there is no file \"no.json\"; a string here is the \
                 path of a JSON Schema"],
        ),
    ]);
}

#[test]
fn bodies_of_a_step() {
    of_a_step(&[
        ("run = \"nothing\"", &["3:7: steps.a.run: function nothing is not registered"]),
        ("tool = \"nothing\"", &["3:8: steps.a.tool: tool nothing is not configured"]),
        ("run = 3", &["3:7: steps.a.run: must be a string, not an integer"]),
        (
            "map = \"data.\"",
            &["3:7: steps.a.map: syntax error: unexpected end of input, expected identifier or \
                 integer in `data.`"],
        ),
        ("map = \"\"", &["3:7: steps.a.map: empty expression in ``"]),
        (
            "http = { method = \"FETCH\", url = \"https://x\" }",
            &["3:19: steps.a.http.method: must be one of GET, POST, PUT, PATCH, DELETE; did \
                 you mean PATCH?"],
        ),
        (
            "http = \"https://x\"",
            &["3:8: steps.a.http: must be a table, { url = \"…\" }, not a string"],
        ),
        (
            "http = { url = \"x.example\" }",
            &["3:16: steps.a.http.url: must begin with http:// or https://"],
        ),
        (
            "http = { url = \"https://x\", headers = { authorization = \"Bearer sk-123\" } }",
            &["3:57: warning: steps.a.http.headers.authorization: looks like a secret in plain \
             text; name an environment variable, as \"secret:NAME\" or \"Bearer \
                 secret:NAME\""],
        ),
        (
            "http = { url = \"https://x\", headers = { authorization = \"{{ input.token }}\" } }",
            &[],
        ),
        (
            "map = 1\ninclude = [\"more.toml\"]",
            &["4:1: steps.a.include: belongs at the top of the file, before the first table"],
        ),
        (
            "http = { url = \"https://x?k=secret:K\" }",
            &["3:16: steps.a.http.url: `secret:K` is allowed in keys and headers only"],
        ),
        (
            "http = { url = \"https://x\", headers = { a = 1 } }",
            &["3:45: steps.a.http.headers.a: must be a template in a string"],
        ),
        (
            "http = { url = \"https://x\", method = \"POST\", body = \"secret:K\" }",
            &["3:53: steps.a.http.body: `secret:K` is allowed in keys and headers only"],
        ),
        ("command = { argv = [] }", &["3:20: steps.a.command.argv: must name a program"]),
        (
            "command = { argv = \"ls\" }",
            &["3:20: steps.a.command.argv: must be an array, not a string"],
        ),
        ("command = {}", &["3:11: steps.a.command: key `argv` is missing"]),
        (
            "command = { argv = [\"ls\", \"secret:K\"] }",
            &["3:27: steps.a.command.argv[1]: arguments are visible to all users of the machine; \
             pass a secret in `env`"],
        ),
        (
            "command = { argv = [\"ls\"], memory_bytes_max = -1 }",
            &["3:47: steps.a.command.memory_bytes_max: must be from 1048576 to 1099511627776"],
        ),
    ]);
}
