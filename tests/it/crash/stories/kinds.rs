//! The stories: each kind of step, and each kind of body.

use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use serde_json::json;

use super::counter::Counter;
use super::{HELD, Home, Story};

const WORK: &str = "{ id = 'a', run = 'work' }";
const AFTER: &str = "{ id = 'c', run = 'work' }";
/// Duration of sleeps that are interrupted by the kill.
const NAP_MS: u64 = 1500;

/// Definitions shared by several stories.
pub(super) fn shared(counter: &Counter) -> String {
    let parameters = "{ type = 'object', properties = { n = { type = 'integer' } } }";
    let tool = |name: &str| {
        format!(
            "[tools.{name}]\nkind = 'http'\nmethod = 'POST'\ndescription = 'Adds one'\n\
             parameters = {parameters}\nurl = '{}'\n",
            counter.url(name)
        )
    };
    format!(
        "{}{}[models.clerk]\nprovider = 'rehearsal'\n\
         [[models.clerk.rules]]\nwhen = 'not tool_results'\n\
         tool_call = {{ name = 'agent', args = {{ n = '1' }} }}\n\
         [[models.clerk.rules]]\nwhen = 'true'\nreply = 'done'\n\
         [agents.clerk]\nmodel = 'clerk'\ntools = ['agent']\n\
         [workflows.part]\nsteps = [{{ id = 'x', run = 'work' }}, {{ id = 'y', run = 'stand' }}]\n",
        tool("tool"),
        tool("agent"),
    )
}

impl Story {
    pub(super) fn config(&self, home: &Home, counter: &Counter) -> String {
        let path = |name| home.path(name).display().to_string();
        let definition = self
            .definition
            .replace("URL", &counter.url("http"))
            .replace("LEDGER", &path("ledger"))
            .replace("HELD", &path(HELD));
        format!("[workflows.{}]\n{definition}\n", self.name)
    }
}

/// A story of one step `b` between two others, with what its block needs.
fn around(name: &'static str, step: &str, rest: &str) -> Story {
    Story {
        name,
        definition: format!("steps = [{WORK}, {{ id = 'b', {step} }}, {AFTER}]\n{rest}"),
        input: json!({ "n": 0 }),
        seen: ("step-start", "b"),
        answer: None,
        result: json!({ "n": 3 }),
        begun: vec![("a", 1), ("b", 2), ("c", 1)],
    }
}

pub(super) fn stories() -> Vec<Story> {
    let mut stories = bodies();
    stories.extend(blocks());
    stories.extend(others());
    stories.extend(loops());
    // The last ones to start: they continue by themselves.
    stories.extend(asleep());
    stories
}

fn blocks() -> Vec<Story> {
    let block = "[{ id = 'x', run = 'work' }, { id = 'y', run = 'stand' }]";
    vec![
        Story {
            result: json!({ "n": 4 }),
            begun: vec![("a", 1), ("b/then/x", 1), ("b/then/y", 2), ("c", 1)],
            seen: ("step-complete", "b/then/x"),
            ..around(
                "when",
                "type = 'andWhen', when = 'data.n == 1', block = 'then'",
                &format!("blocks.then = {block}"),
            )
        },
        Story {
            result: json!({ "n": 4 }),
            begun: vec![("a", 1), ("b/second/x", 1), ("b/second/y", 2), ("c", 1)],
            seen: ("step-complete", "b/second/x"),
            ..around(
                "branch",
                "type = 'andBranch', default = 'other', cases = \
                 [{ when = 'data.n == 2', block = 'first' }, { when = 'true', block = 'second' }]",
                &format!(
                    "blocks.first = [{{ id = 'z', run = 'work' }}]\n\
                     blocks.other = [{{ id = 'o', run = 'work' }}]\nblocks.second = {block}"
                ),
            )
        },
        Story {
            result: json!([{ "n": 2 }, { "n": 3 }]),
            begun: vec![("a", 1), ("b/left/l", 1), ("b/right/x", 1), ("b/right/y", 2)],
            seen: ("step-complete", "b/left/l"),
            definition: format!(
                "steps = [{WORK}, {{ id = 'b', type = 'andAll', blocks = ['left', 'right'] }}]\n\
                 blocks.left = [{{ id = 'l', run = 'work' }}]\nblocks.right = {block}"
            ),
            ..around("all", "", "")
        },
        Story {
            begun: vec![("a", 1), ("b/left/q", 2), ("b/left/q2", 1)],
            seen: ("step-suspended", "b/right/w"),
            definition: format!(
                "steps = [{WORK}, {{ id = 'b', type = 'andRace', blocks = ['left', 'right'] }}]\n\
                 blocks.left = [{{ id = 'q', run = 'stand' }}, {{ id = 'q2', run = 'work' }}]\n\
                 blocks.right = [{{ id = 'w', run = 'work', suspend = {{ deadline = '1h' }} }}]"
            ),
            ..around("race", "", "")
        },
    ]
}

fn others() -> Vec<Story> {
    vec![
        Story { result: json!({ "n": 2 }), ..around("tap", "type = 'andTap', run = 'stand'", "") },
        Story {
            result: json!({ "n": 4 }),
            begun: vec![("a", 1), ("b:x", 1), ("b:y", 2), ("c", 1)],
            ..around("workflow", "type = 'andWorkflow', workflow = 'part'", "")
        },
        Story {
            definition: "steps = [{ id = 'a', type = 'andAgent', agent = 'clerk', \
                         prompt = 'add' }, { id = 'b', map = 'data.text' }]"
                .to_owned(),
            result: json!("done"),
            seen: ("step-start", "a"),
            begun: Vec::new(),
            ..around("agent", "", "")
        },
        Story {
            begun: vec![("a", 1), ("b", 2), ("c", 1)],
            seen: ("step-complete", "m"),
            result: json!({ "n": 12 }),
            definition: format!(
                "steps = [{WORK}, {{ id = 'm', type = 'andMap', map = {{ n = 'data.n + 9' }} }}, \
                 {{ id = 'b', run = 'stand' }}, {AFTER}]"
            ),
            ..around("map", "", "")
        },
    ]
}

fn bodies() -> Vec<Story> {
    let program = "printf '%-255s\\n' \
                   \"$GREENROOM_EXECUTION_ID ${GREENROOM_IDEMPOTENCY_KEY#*/} \
                   $GREENROOM_ATTEMPT $GREENROOM_IDEMPOTENCY_KEY\" >> LEDGER; \
                   while [ -e HELD ]; do sleep 0.01; done; sed s/1/2/";
    let called = || vec![("a", 1), ("c", 1)];
    vec![
        around("run", "run = 'stand'", ""),
        Story { begun: called(), ..around("http", "http = { method = 'POST', url = 'URL' }", "") },
        Story { begun: called(), ..around("tool", "tool = 'tool'", "") },
        around(
            "command",
            &format!("command = {{ argv = ['/bin/sh', '-c', '''{program}'''] }}"),
            "",
        ),
        Story {
            // the map is evaluated with the start and the end of its step in one commit
            seen: ("step-complete", "m"),
            definition: format!(
                "steps = [{WORK}, {{ id = 'm', map = {{ n = 'data.n + 9' }} }}, \
                 {{ id = 'b', run = 'stand' }}]"
            ),
            result: json!({ "n": 11 }),
            begun: vec![("a", 1), ("b", 2)],
            ..around("then-map", "", "")
        },
        Story {
            seen: ("workflow-suspended", ""),
            answer: Some(json!({ "by": "ann" })),
            result: json!({ "n": 3 }),
            begun: vec![("a", 1), ("b", 1), ("c", 1)],
            ..around("question", "run = 'work', suspend = { deadline = '1h' }", "")
        },
    ]
}

fn loops() -> Vec<Story> {
    let round = "[{ id = 'm', map = { n = 'data.n', passes = 'index == 0' } }, \
                 { id = 'y', run = 'stand' }]";
    let rounds = |name, kind: &str, when: &str| Story {
        result: json!({ "n": 5, "passes": false }),
        begun: vec![("a", 1), ("b[0]/y", 1), ("b[1]/y", 2), ("b[2]/y", 1), ("c", 1)],
        seen: ("step-start", "b[1]/y"),
        ..around(
            name,
            &format!("type = '{kind}', when = '{when}', max_iterations = 9, block = 'round'"),
            &format!("blocks.round = {round}"),
        )
    };
    let item = |n: u64, passes: bool| json!({ "n": n, "passes": passes });
    vec![
        rounds("do-while", "andDoWhile", "data.n < 4"),
        rounds("do-until", "andDoUntil", "data.n == 4"),
        Story {
            // two at once: two have finished, two are interrupted, one has not begun
            input: json!({ "items": [
                item(0, true),
                item(10, true),
                item(20, false),
                item(30, false),
                item(40, true)
            ] }),
            result: json!([
                item(2, true),
                item(12, true),
                item(22, false),
                item(32, false),
                item(42, true)
            ]),
            begun: vec![
                ("b[0]/x", 1),
                ("b[0]/y", 1),
                ("b[1]/x", 1),
                ("b[1]/y", 1),
                ("b[2]/x", 1),
                ("b[2]/y", 2),
                ("b[3]/x", 1),
                ("b[3]/y", 2),
                ("b[4]/x", 1),
                ("b[4]/y", 1),
            ],
            seen: ("step-complete", "b[1]/y"),
            definition: "steps = [{ id = 'b', type = 'andForEach', items = 'input.items', \
                         concurrency = 2, block = 'item' }]\n\
                         blocks.item = [{ id = 'x', run = 'work' }, { id = 'y', run = 'stand' }]"
                .to_owned(),
            ..around("for-each", "", "")
        },
        nested(),
    ]
}

/// Rounds of items of branches at once, some of them children; the second round is interrupted.
fn nested() -> Story {
    let definition = "steps = [{ id = 'r', type = 'andDoUntil', when = 'data.n > 20', \
         max_iterations = 5, block = 'round' }]\n\
         blocks.round = [{ id = 'each', type = 'andForEach', items = '[data.n, data.n + 1]', \
         concurrency = 2, block = 'item' }, { id = 'sum', map = { n = 'data | sum' } }]\n\
         blocks.item = [\
         { id = 'pre', map = { n = 'item', passes = 'steps.sum is undefined' } }, \
         { id = 'both', type = 'andAll', blocks = ['left', 'right'] }, \
         { id = 'fold', map = 'data[0].n + data[1].n' }]\n\
         blocks.left = [{ id = 'p', type = 'andWorkflow', workflow = 'part' }]\n\
         blocks.right = [{ id = 's', run = 'stand' }]";
    Story {
        definition: definition.to_owned(),
        seen: ("step-start", "r[1]/each[1]/both/left/p"),
        // (2 + 1) + (3 + 2), then (10 + 9) + (11 + 10)
        result: json!({ "n": 40 }),
        begun: vec![
            ("r[0]/each[0]/both/left/p:x", 1),
            ("r[0]/each[0]/both/left/p:y", 1),
            ("r[0]/each[0]/both/right/s", 1),
            ("r[0]/each[1]/both/left/p:x", 1),
            ("r[0]/each[1]/both/left/p:y", 1),
            ("r[0]/each[1]/both/right/s", 1),
            ("r[1]/each[0]/both/left/p:x", 1),
            ("r[1]/each[0]/both/left/p:y", 2),
            ("r[1]/each[0]/both/right/s", 2),
            ("r[1]/each[1]/both/left/p:x", 1),
            ("r[1]/each[1]/both/left/p:y", 2),
            ("r[1]/each[1]/both/right/s", 2),
        ],
        ..around("nested", "", "")
    }
}

fn asleep() -> Vec<Story> {
    let pause = NAP_MS;
    let at = SystemClock.now().plus_ms(pause).0;
    vec![
        Story {
            result: json!({ "n": 2 }),
            begun: vec![("a", 1), ("c", 1)],
            ..around("sleep", &format!("type = 'andSleep', duration = '{pause}ms'"), "")
        },
        Story {
            input: json!({ "at": at }),
            definition: format!(
                "steps = [{{ id = 'a', map = {{ n = 1 }} }}, \
                 {{ id = 'b', type = 'andSleepUntil', until = 'input.at' }}, {AFTER}]"
            ),
            result: json!({ "n": 2 }),
            begun: vec![("c", 1)],
            ..around("sleep-until", "", "")
        },
        Story {
            // killed in the pause between two attempts
            input: json!({ "n": 0, "fails": 1 }),
            seen: ("step-error", "b"),
            result: json!({ "attempt": 2, "n": 1 }),
            ..around(
                "retry",
                &format!("run = 'flaky', retry = {{ attempts = 2, delay = '{pause}ms' }}"),
                "",
            )
        },
    ]
}
