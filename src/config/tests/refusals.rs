//! Refusals, with their exact texts.

use super::problems_of;

/// A table of texts; each line of `expected` is one problem.
#[track_caller]
pub(super) fn refused(cases: &[(&str, &[&str])]) {
    for (text, expected) in cases {
        assert_eq!(problems_of(text), *expected, "for:\n{text}");
    }
}

#[test]
fn mistakes_in_sections() {
    refused(&[
        (
            "[server]\n  port = 3141\n  hots = 1\n",
            &["c.toml:3:3: server.hots: unknown key; did you mean host?"],
        ),
        (
            "[limits]\n  body_byte_max = 1\n  subscriber_que = 1\n",
            &[
                "c.toml:2:3: limits.body_byte_max: unknown key",
                "c.toml:3:3: limits.subscriber_que: unknown key; did you mean subscriber_queue?",
            ],
        ),
        (
            "[server]\nbody_byte_max = 1\n",
            &["c.toml:2:1: server.body_byte_max: unknown key; did you mean body_bytes_max?"],
        ),
        ("[sever]\n", &["c.toml:1:2: sever: unknown key; did you mean server?"]),
        ("server = 3\n", &["c.toml:1:10: server: must be a table, not an integer"]),
        (
            "[server]\nport = 70000\nhost = \"\"\nworkers = \"2\"\n",
            &[
                "c.toml:2:8: server.port: must be from 0 to 65535",
                "c.toml:3:8: server.host: must not be empty",
                "c.toml:4:11: server.workers: must be a whole number, not a string",
            ],
        ),
        (
            "[server]\nkeep_alive = 5\nbody_timeout = \"soon\"\nshutdown_grace = \"0s\"\n\
             [store]\npassivate_after = \"11y\"\n[limits]\nheartbeat = \"1500us\"\n",
            &[
                "c.toml:2:14: server.keep_alive: must be a duration such as \"500ms\", \"3s\" or \
                 \"48h\", not an integer",
                "c.toml:3:16: server.body_timeout: must be a duration such as \"500ms\", \"3s\" or \
                 \"48h\"",
                "c.toml:4:18: server.shutdown_grace: must be longer than 0ms",
                "c.toml:6:19: store.passivate_after: must be at most 3650 days",
                "c.toml:8:13: limits.heartbeat: must be whole milliseconds",
            ],
        ),
        (
            "[store]\npatience = 10\n[auth]\nprovider = \"jwt\"\n[docs]\nui = 1\n",
            &[
                "c.toml:2:12: store.patience: must be a duration such as \"500ms\", \"3s\" or \
                 \"48h\", not an integer",
                "c.toml:4:12: auth.provider: must be \"none\"; configure providers in [auth.jwt] \
                 or [[auth.api_keys]]",
                "c.toml:6:6: docs.ui: must be true or false, not an integer",
            ],
        ),
        (
            "[store]\nurl = \"mysql://x\"\ndurability = \"some\"\n[cors]\norigins = [\"*\", \
             \"x\"]\n",
            &[
                "c.toml:2:7: store.url: must be \"sqlite://PATH\", \
                 \"postgres://USER@HOST/DATABASE\" or \"memory:\"",
                "c.toml:3:14: store.durability: must be \"full\", \"normal\" or \"replicated\"",
                "c.toml:5:17: cors.origins[1]: must be an origin such as \
                 \"https://app.example\", without a path",
            ],
        ),
        (
            "[server]\nhost = \"${HOST}\"\n[store]\nurl = \"secret:URL\"\n",
            &[
                "c.toml:2:8: server.host: `${HOST}` is allowed in keys and headers only",
                "c.toml:4:7: store.url: `secret:URL` is allowed in keys and headers only",
            ],
        ),
    ]);
}

#[test]
fn mistakes_about_logs() {
    refused(&[
        (
            "[logs]\nformat = \"xml\"\nlevel = \"INFO\"\nretention = \"0s\"\nrows_max = 0\n\
             queue = 0\nmessage_bytes_max = 63\nconsole = \"info\"\n",
            &[
                "c.toml:2:10: logs.format: must be one of text, json",
                "c.toml:3:9: logs.level: must be one of off, error, warn, info, debug, trace; \
                 did you mean info?",
                "c.toml:4:13: logs.retention: must be longer than 0ms",
                "c.toml:5:12: logs.rows_max: must be from 1 to 1000000000",
                "c.toml:6:9: logs.queue: must be from 1 to 1000000",
                "c.toml:7:21: logs.message_bytes_max: must be from 64 to 1048576",
                "c.toml:8:1: logs.console: is set with `--log` on the command line",
            ],
        ),
        (
            "[logs]\nlevl = \"off\"\nformat = 1\n",
            &[
                "c.toml:2:1: logs.levl: unknown key; did you mean level?",
                "c.toml:3:10: logs.format: must be a string, not an integer",
            ],
        ),
    ]);
}

#[test]
fn mistakes_about_the_installation() {
    refused(&[
        (
            "[system]\nenv_file = \"\"\nenvfile = 1\n[updates]\nregistry = \"ftp://x\"\ninstall \
             = []\n\
             install_timeout = \"0s\"\n",
            &[
                "c.toml:2:12: system.env_file: must not be empty",
                "c.toml:3:1: system.envfile: unknown key; did you mean env_file?",
                "c.toml:5:12: updates.registry: must begin with https://, http:// or \
                 sparse+https://",
                "c.toml:6:11: updates.install: must name a program, e.g. [\"cargo\", \"install\", \
                 \"{package}\"]",
                "c.toml:7:19: updates.install_timeout: must be longer than 0ms",
            ],
        ),
        (
            "[system]\nenv_file = \"a\\u0000b\"\n[updates]\n\
             registry = \"https://ann:pw@index.example\"\ninstall = [\"\", 1, \"a\\u0000\"]\n",
            &[
                "c.toml:2:12: system.env_file: must not contain a NUL character",
                "c.toml:4:12: updates.registry: must not hold a user name or a password",
                "c.toml:5:12: updates.install[0]: must not be empty",
                "c.toml:5:16: updates.install[1]: must be a string, not an integer",
                "c.toml:5:19: updates.install[2]: must not contain a NUL character",
            ],
        ),
        (
            "[updates]\nregistry = \"index.example\"\ninstall = \"cargo install\"\n",
            &[
                "c.toml:2:12: updates.registry: is not a valid address: relative URL without a \
                 base",
                "c.toml:3:11: updates.install: must be an array, not a string",
            ],
        ),
    ]);
}

#[test]
fn mistakes_of_syntax() {
    refused(&[
        (
            "a = \n[server]\nport = 1\nport = 2\n",
            &[
                "c.toml:1:5: string values must be quoted, expected literal string",
                "c.toml:4:1: duplicate key",
            ],
        ),
        ("[server\n", &["c.toml:1:8: unclosed table, expected `]`"]),
    ]);
}

#[test]
fn mistakes_in_models_and_agents() {
    refused(&[
        (
            "[models.m]\nprovider = \"openai\"\nbase_url = \"http://x\"\n[models.n]\n\
             [models.\"a b\"]\nprovider = \"mok\"\n",
            &[
                "c.toml:1:1: models.m: key `model` is missing",
                "c.toml:4:1: models.n: key `provider` is missing",
                "c.toml:5:1: models.\"a b\": must be a letter or digit, then letters, digits, \
                 `.`, `_` or `-`, and not `executions`",
                "c.toml:6:12: models.\"a b\".provider: must be one of openai, anthropic, \
                 gemini, ollama, groq, deepseek, xai, cohere, openrouter, together, fireworks, \
                 mock; did you mean mock?",
            ],
        ),
        (
            "[models.m]\nprovider = \"mock\"\n[[models.m.rules]]\nwhen = \"nonsense\"\n\
             object = { a = \"bogus\" }\n",
            &[
                "c.toml:4:8: models.m.rules[0].when: `nonsense` is not in scope; in scope: \
                 prompt, messages, \
                 tools, schema, tool_results; a string is written \"'nonsense'\"",
                "c.toml:5:16: models.m.rules[0].object.a: `bogus` is not in scope; in scope: \
                 prompt, \
                 messages, tools, schema, tool_results; a string is written \"'bogus'\"",
            ],
        ),
        (
            "[models.m]\nprovider = \"mock\"\n[[models.m.rules]]\nwhen = \"prompt\"\n\
             [[models.m.rules]]\nreply = \"a\"\nerror = \"b\"\n\
             [[models.m.rules]]\ntool_call = { args = {} }\n",
            &[
                "c.toml:3:1: models.m.rules[0]: needs one of `reply`, `tool_call`, `tool_calls`, \
                 `object`, `error`, `delay`",
                "c.toml:5:1: models.m.rules[1]: must have only one of `reply`, `error`",
                "c.toml:9:13: models.m.rules[2].tool_call: key `name` is missing",
            ],
        ),
        (
            "[models.m]\nprovider = \"mock\"\n[agents.a]\nmodel = \"m\"\n\
             max_steps = 3\n[agents.b]\nmodel = \"m\"\noptions = { max_steps = 3 }\n\
             [[workflows.w.steps]]\nid = \"s\"\ntype = \"andAgent\"\nagent = \"a\"\n\
             options = { max_steps = 0, context_limit = -1 }\n",
            &[
                "c.toml:8:13: agents.b.options.max_steps: belongs to the agent itself, beside \
                 `options`",
                "c.toml:13:25: workflows.w.steps.s.options.max_steps: must be from 1 to 4294967295",
                "c.toml:13:44: workflows.w.steps.s.options.context_limit: must be from 0 to \
                 4294967295",
            ],
        ),
        (
            "[models.fast]\nprovider = \"mock\"\n[agents.a]\nmodel = \"fsat\"\n[agents.b]\n\
             tools = []\nmodel = \"fast\"\noptions = { temperature = 2, topP = 1 }\n",
            &[
                "c.toml:4:9: agents.a.model: model fsat is not configured; did you mean fast?",
                "c.toml:8:27: agents.b.options.temperature: must be from 0 to 1",
                "c.toml:8:30: agents.b.options.topP: unknown key; did you mean top_p?",
            ],
        ),
    ]);
}

#[test]
fn mistakes_in_calls_of_steps() {
    let step = |lines: &str| format!("[[workflows.w.steps]]\nid = \"a\"\n{lines}\n");
    refused(&[
        (
            &step("http = { url = \"https://a.example/{{ data.id\", method = \"post\" }"),
            &["c.toml:3:57: workflows.w.steps.a.http.method: must be one of GET, POST, PUT, \
                 PATCH, \
               DELETE; did you mean POST?"],
        ),
        (
            &step("http = { url = \"ftp://a.example\", body = 1, headers = { host = \"x\" } }"),
            &[
                "c.toml:3:16: workflows.w.steps.a.http.url: url: must begin with http:// or \
                 https://",
                "c.toml:3:42: workflows.w.steps.a.http.body: a GET sends no body; method = \
                 \"POST\" does",
                "c.toml:3:64: workflows.w.steps.a.http.headers.host: is set by the HTTP client; \
                 it cannot be configured",
            ],
        ),
        (
            &step("http = { url = \"https://a.example\", query = { q = \"(\" }, hedaers = {} }"),
            &[
                "c.toml:3:51: workflows.w.steps.a.http.query.q: syntax error: unexpected end of \
                 input, expected expression in `(`",
                "c.toml:3:58: workflows.w.steps.a.http.hedaers: unknown key; did you mean headers?",
            ],
        ),
        (
            &step("command = { argv = [\"{{ data }}\"], env = { GREENROOM_X = \"1\" } }"),
            &[
                "c.toml:3:21: workflows.w.steps.a.command.argv[0]: the program cannot be a \
                 template: data must not select it",
                "c.toml:3:58: workflows.w.steps.a.command.env.GREENROOM_X: is set by the server; \
                 it cannot be configured",
            ],
        ),
        (
            &step("tool = \"absent\"\nargs = \"(\""),
            &[
                "c.toml:3:8: workflows.w.steps.a.tool: tool absent is not configured",
                "c.toml:4:8: workflows.w.steps.a.args: syntax error: unexpected end of input, \
                 expected expression in `(`",
            ],
        ),
        (
            &step("map = 1\nargs = 1\ncommand = { argv = [\"a\"] }"),
            &[
                "c.toml:4:8: workflows.w.steps.a.args: is only valid beside `tool`",
                "c.toml:5:11: workflows.w.steps.a.command: cannot be combined with `map`; remove \
                 one of them",
            ],
        ),
    ]);
}

#[test]
fn mistakes_in_steps() {
    refused(&[
        (
            "[workflows.w]\nsteps = [\n  { id = \"a\" },\n  { map = 1 },\n  \
             { id = \"b\", map = 1, run = \"f\" },\n  { id = \"c\", http = {} },\n  \
             { id = \"d\", type = \"andSlep\", duration = \"1s\" },\n  \
             { id = \"e\", type = \"andForEach\", items = \"x\" },\n]\n",
            &[
                "c.toml:3:3: workflows.w.steps.a: needs one of `map`, `run`, `http`, `command`, \
                 `tool`",
                "c.toml:4:3: workflows.w.steps[1]: key `id` is missing",
                "c.toml:5:30: workflows.w.steps.b.run: cannot be combined with `map`; remove one \
                 of them",
                "c.toml:6:22: workflows.w.steps.c.http: key `url` is missing",
                "c.toml:7:22: workflows.w.steps.d.type: unknown type \"andSlep\"; did you mean \
                 andSleep?",
                "c.toml:8:3: workflows.w.steps.e: key `block` is missing",
            ],
        ),
        (
            "[[workflows.w.steps]]\nid = \"a\"\ntype = \"andSleep\"\nduration = \"1s\"\n\
             suspend = {}\nretry = {}\nmap = 1\ntimout = \"1s\"\n\
             [[workflows.w.steps]]\nid = \"b\"\nmap = 1\ntimout = \"1s\"\n",
            &[
                "c.toml:5:1: workflows.w.steps.a.suspend: key `suspend` does not belong to \
                 andSleep",
                "c.toml:6:1: workflows.w.steps.a.retry: key `retry` does not belong to andSleep",
                "c.toml:7:1: workflows.w.steps.a.map: key `map` does not belong to andSleep",
                "c.toml:8:1: workflows.w.steps.a.timout: unknown key",
                "c.toml:12:1: workflows.w.steps.b.timout: unknown key; did you mean timeout?",
            ],
        ),
        (
            "[[workflows.w.steps]]\nid = \"a\"\nmap = { at = 2024-01-01, x = nan }\n\
             retry = { attempts = 0, factor = 0.5, delay = \"0s\" }\non_error = \"maybe\"\n\
             suspend = { deadline = \"1h\", on_timeout = { resme = 1 } }\n\
             resume_schema = \"object\"\n",
            &[
                "c.toml:3:14: workflows.w.steps.a.map.at: is a date; write it as a string",
                "c.toml:3:30: workflows.w.steps.a.map.x: is not a number that JSON can represent",
                "c.toml:4:22: workflows.w.steps.a.retry.attempts: must be from 1 to 1000",
                "c.toml:4:34: workflows.w.steps.a.retry.factor: must be from 1 to 100",
                "c.toml:5:12: workflows.w.steps.a.on_error: must be \"fail\", \"ignore\" or \
                 { value = ... }",
                "c.toml:6:43: workflows.w.steps.a.suspend.on_timeout: key `resume` is missing",
                "c.toml:6:45: workflows.w.steps.a.suspend.on_timeout.resme: unknown key; did you \
                 mean resume?",
                "c.toml:7:17: workflows.w.steps.a.resume_schema: there is no file \"object\"; a \
                 string here is the path of a JSON Schema",
            ],
        ),
        (
            "[workflows.w]\nsteps = []\n[workflows.executions]\nsteps = [{ id = \"a\", map = 1 }]\n\
             [workflows.v]\n[workflows.\"greenroom.bulk\"]\nsteps = [{ id = \"a\", map = 1 }]\n",
            &[
                "c.toml:2:9: workflows.w.steps: needs at least one step",
                "c.toml:3:1: workflows.executions: must be a letter or digit, then letters, \
                 digits, `.`, `_` or `-`, and not `executions`",
                "c.toml:5:1: workflows.v: key `steps` is missing",
                "c.toml:6:1: workflows.\"greenroom.bulk\": is the workflow of bulk operations; \
                 choose another id",
            ],
        ),
        (
            "[[workflows.w.steps]]\nid = \"a\"\nmap = \"secret:TOKEN\"\n",
            &["c.toml:3:7: workflows.w.steps.a.map: `secret:TOKEN` is allowed in keys and \
                 headers \
               only"],
        ),
    ]);
}

#[test]
fn mistakes_across_definitions() {
    refused(&[
        (
            "[agents.helper]\nmodel = \"m\"\n[models.m]\nprovider = \"mock\"\n\
             [[workflows.w.steps]]\nid = \"a\"\ntype = \"andAgent\"\nagent = \"helpr\"\n\
             [[workflows.w.steps]]\nid = \"b\"\ntype = \"andWorkflow\"\nworkflow = \"x\"\n",
            &[
                "c.toml:8:9: workflows.w.steps.a.agent: agent helpr is not configured; did you \
                 mean helper?",
                "c.toml:12:12: workflows.w.steps.b.workflow: workflow x is not configured",
            ],
        ),
        (
            "[workflows.w]\nresult = \"steps.my-step\"\n[[workflows.w.steps]]\nid = \"my-step\"\n\
             map = 1\n[[workflows.w.steps]]\nid = \"b\"\nmap = { x = [\"steps.my-step.n\"] }\n",
            &[
                "c.toml:2:10: workflows.w.result: `steps.my-step` is a subtraction; did you \
                 mean steps['my-step']?",
                "c.toml:8:14: workflows.w.steps.b.map.x[0]: `steps.my-step` is a subtraction; \
                 did you mean steps['my-step']?",
            ],
        ),
        (
            "[[workflows.w.steps]]\nid = \"a\"\nsuspend = {}\nmap = 1\n\
             [[workflows.w.steps]]\nid = \"b\"\ntype = \"andWorkflow\"\nworkflow = \"w\"\n",
            &[
                "c.toml:1:13: warning: workflows.w: calls itself as a sub-workflow",
                "c.toml:3:11: warning: workflows.w.steps.a.suspend: has no deadline",
            ],
        ),
    ]);
}

#[test]
fn mistakes_in_expressions_schemas_and_ids() {
    refused(&[
        (
            "[workflows.w]\ninput_schema = { type = \"objekt\" }\n[[workflows.w.steps]]\n\
             id = \"a\"\nmap = { x = \"1 +\" }\n[[workflows.w.steps]]\nid = \"a\"\nmap = 1\n\
             [[workflows.w.steps]]\nid = \"2\"\nmap = 1\n",
            &[
                "c.toml:2:16: workflows.w.input_schema: schema at /type: \"objekt\" is not a type; \
                 expected array, boolean, integer, null, number, object or string",
                "c.toml:5:13: workflows.w.steps.a.map.x: syntax error: unexpected end of input, \
                 expected expression in `1 +`",
                "c.toml:7:6: workflows.w.steps.a.id: step id `a` is used more than once",
                "c.toml:10:6: workflows.w.steps.2.id: a step id is a letter, then letters, \
                 digits, `_` or `-`",
            ],
        ),
        (
            "[models.m]\nprovider = \"mock\"\nrules = [{ when = \"(\", object = { x = [\")\"] \
             } }]\n[agents.a]\nmodel = \"m\"\ninstructions = \"{{\"\n",
            &[
                "c.toml:3:19: models.m.rules[0].when: syntax error: unexpected end of input, \
                 expected expression in `(`",
                "c.toml:3:40: models.m.rules[0].object.x[0]: syntax error: unexpected `)` in `)`",
                "c.toml:6:16: agents.a.instructions: syntax error: unexpected end of input, \
                 expected expression in `{{`",
            ],
        ),
    ]);
}
