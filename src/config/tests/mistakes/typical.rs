//! A support desk with one typical mistake at a time, and all problems that are reported: one line,
//! or one for each wrong place.

use crate::config::tests::problems_of;

const DESK: &str = include_str!("typical.toml");

/// A text, its replacement, and the problems.
type Mistake<'a> = (&'a str, &'a str, &'a [&'a str]);

#[test]
fn the_unchanged_desk_has_no_problems() {
    assert_eq!(problems_of(DESK), Vec::<String>::new());
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn a_typical_mistake_is_reported_once_at_its_place() {
    let mistakes: &[Mistake<'_>] = &[
        // unknown filter
        (
            "| sum\"",
            "| total('x')\"",
            &["35:17: workflows.ticket.steps.total.map.cents: there is no filter `total`"],
        ),
        // unknown filter named to a filter
        (
            "map(attribute='cents') | sum",
            "map('uper') | sum",
            &[
                "35:17: workflows.ticket.steps.total.map.cents: there is no filter `uper`; did you mean upper?",
            ],
        ),
        // unknown test
        (
            "steps.boss is defined else",
            "steps.boss is emty else",
            &["63:10: workflows.ticket.steps.letter.prompt: there is no test `emty`"],
        ),
        // unknown function
        (
            "\"index + 1\"",
            "\"rnge(3)\"",
            &[
                "57:38: workflows.ticket.blocks.line.book.map.number: there is no function `rnge`; did you mean range?",
            ],
        ),
        // a method
        (
            "\"item.name\", number",
            "\"item.name.upper()\", number",
            &[
                "57:16: workflows.ticket.blocks.line.book.map.name: values have no methods such as `upper()`: write `value | upper`",
            ],
        ),
        // input key
        (
            "\"input.customer\"",
            "\"input.custmer\"",
            &[
                "29:15: workflows.ticket.steps.who.args.id: `input` has no `custmer`; it has at, customer, lines; did you mean customer?",
            ],
        ),
        // input key, allowed for
        ("\"input.customer\"", "\"input.custmer | default('x')\"", &[]),
        // key of an item
        (
            "\"item.name\", number",
            "\"item.nmae\", number",
            &[
                "57:16: warning: workflows.ticket.blocks.line.book.map.name: `item` may have no `nmae`; its schema lists cents, name; did you mean name?",
            ],
        ),
        // list length
        (
            "\"data.cents > 100\"",
            "\"input.lines.length > 1\"",
            &[
                "40:8: workflows.ticket.steps.big.when: `input.lines` is a list and has no `length`; `| length` counts its items",
            ],
        ),
        // args key
        (
            "{{ args.id }}",
            "{{ args.ident }}",
            &["13:7: tools.lookup.url: `args` has no `ident`; it has id"],
        ),
        // resume key
        (
            "\"resume.approved\"",
            "\"resume.aproved\"",
            &[
                "45:20: warning: workflows.ticket.blocks.ask.boss.map.approved: `resume` may have no `aproved`; its schema lists approved; did you mean approved?",
            ],
        ),
        // key of an output with a schema
        (
            "name = \"steps.who.name\"",
            "name = \"steps.who.nmae\"",
            &[
                "35:70: workflows.ticket.steps.total.map.name: `steps.who` has no `nmae`; it has name; did you mean name?",
            ],
        ),
        // key of a map
        (
            "{{ steps.total.cents }}?",
            "{{ steps.total.cent }}?",
            &[
                "47:22: workflows.ticket.blocks.ask.boss.suspend.reason: `steps.total` has no `cent`; it has cents, name; did you mean cents?",
            ],
        ),
        // key of data
        (
            "\"data.cents > 100\"",
            "\"data.cent > 100\"",
            &[
                "40:8: workflows.ticket.steps.big.when: `data` has no `cent`; it has cents, name; did you mean cents?",
            ],
        ),
        // key of an agent's answer
        (
            "\"steps.letter.text\"",
            "\"steps.letter.txt\"",
            &[
                "16:50: warning: workflows.ticket.result.letter: `steps.letter` may have no `txt`; its schema lists text, usage; did you mean text?",
            ],
        ),
        // key of execution
        (
            "\"index + 1\"",
            "\"execution.startedat\"",
            &[
                "57:38: workflows.ticket.blocks.line.book.map.number: `execution` has no `startedat`; it has conversationId, id, startedAt, userId, workflowId; did you mean startedAt?",
            ],
        ),
        // expression as a prompt
        (
            "prompt = \"Write to {{ steps.total.name }}, {{ 'who was asked about' if steps.boss is defined else 'about' }} {{ steps.total.cents }}\"",
            "prompt = \"steps.total.name\"",
            &[
                "63:10: warning: workflows.ticket.steps.letter.prompt: is literal text; write `{{ steps.total.name }}` for the value",
            ],
        ),
        // foreign template
        (
            "Pay {{ steps.total.cents }}?",
            "Pay ${steps.total.cents}?",
            &[
                "47:22: warning: workflows.ticket.blocks.ask.boss.suspend.reason: `${steps.total.cents}` is not replaced: write `{{ steps.total.cents }}`",
            ],
        ),
        // single braces
        (
            "Pay {{ steps.total.cents }}?",
            "Pay {steps.total.cents}?",
            &[
                "47:22: warning: workflows.ticket.blocks.ask.boss.suspend.reason: `{steps.total.cents}` is not replaced: write `{{ steps.total.cents }}`",
            ],
        ),
        // template in a text of an expression
        (
            "\"item.name\", number",
            "\"'Dear {{ item.name }}'\", number",
            &[
                "57:16: warning: workflows.ticket.blocks.line.book.map.name: `{{ }}` in a string of an expression is not replaced: concatenate with `~`",
            ],
        ),
        // a branch that may not run
        (
            "letter = \"steps.letter.text\" }",
            "ok = \"steps.boss.approved\" }",
            &[
                "16:46: warning: workflows.ticket.result.ok: step boss does not run if the condition of big is false; add a `default()`",
            ],
        ),
        // braces around an expression
        (
            "\"data.cents > 100\"",
            "\"{{ data.cents > 100 }}\"",
            &[
                "40:8: workflows.ticket.steps.big.when: syntax error: unexpected `}`, expected `:` in `{{ data.cents > 100 }}`; write `data.cents > 100`",
            ],
        ),
        // &&
        (
            "\"data.cents > 100\"",
            "\"data.cents > 100 && true\"",
            &[
                "40:8: workflows.ticket.steps.big.when: syntax error: unexpected character in `data.cents > 100 && true`; `&&` is written `and`",
            ],
        ),
        // ||
        (
            "\"data.cents > 100\"",
            "\"data.cents > 100 || true\"",
            &[
                "40:8: workflows.ticket.steps.big.when: syntax error: unexpected `|`, expected identifier in `data.cents > 100 || true`; `||` is written `or`",
            ],
        ),
        // !
        (
            "\"data.cents > 100\"",
            "\"!data.cents\"",
            &[
                "40:8: workflows.ticket.steps.big.when: syntax error: unexpected character in `!data.cents`; `!a` is written `not a`",
            ],
        ),
        // =
        (
            "\"data.cents > 100\"",
            "\"data.cents = 100\"",
            &[
                "40:8: workflows.ticket.steps.big.when: syntax error: unexpected input after expression in `data.cents = 100`; values are compared with `==`",
            ],
        ),
        // ternary
        (
            "\"index + 1\"",
            "\"index > 1 ? 1 : 2\"",
            &[
                "57:38: workflows.ticket.blocks.line.book.map.number: syntax error: unexpected character in `index > 1 ? 1 : 2`; `a ? b : c` is written `b if a else c`",
            ],
        ),
        // null
        (
            "\"index + 1\"",
            "\"null\"",
            &["57:38: workflows.ticket.blocks.line.book.map.number: `null` is written `none`"],
        ),
        // a bare text
        (
            "\"index + 1\"",
            "\"first\"",
            &[
                "57:38: workflows.ticket.blocks.line.book.map.number: `first` is not in scope; in scope: data, input, steps, resume, resumed_by, context, user, item, index, execution; a string is written \"'first'\"",
            ],
        ),
        // unknown format
        (
            "format = \"date-time\"",
            "format = \"datetime\"",
            &[
                "23:45: warning: workflows.ticket.input_schema.properties.at.format: unknown format `datetime`: it is not checked; did you mean date-time?",
            ],
        ),
        // duplicate id
        (
            "id = \"total\"",
            "id = \"who\"",
            &["34:6: workflows.ticket.steps.who.id: step id `who` is used more than once"],
        ),
        // duplicate id in a block
        (
            "id = \"book\"",
            "id = \"total\"",
            &[
                "56:6: workflows.ticket.blocks.line.total.id: step id `total` is used more than once",
            ],
        ),
        // singular section
        ("[agents.desk]", "[agent.desk]", &["4:2: agent: unknown key; did you mean agents?"]),
        // singular tools
        ("[tools.lookup]", "[tool.lookup]", &["9:2: tool: unknown key; did you mean tools?"]),
        // misspelt agent
        (
            "agent = \"desk\"",
            "agent = \"dsek\"",
            &[
                "62:9: workflows.ticket.steps.letter.agent: agent dsek is not configured; did you mean desk?",
            ],
        ),
        // misspelt tool
        (
            "tools = [\"lookup\"]",
            "tools = [\"lokup\"]",
            &["6:10: agents.desk.tools[0]: tool lokup is not configured; did you mean lookup?"],
        ),
        // misspelt block
        (
            "block = \"line\"",
            "block = \"lines\"",
            &[
                "53:9: workflows.ticket.steps.each.block: there is no block lines; did you mean line?",
                "55:1: workflows.ticket.blocks.line: no step uses this block",
            ],
        ),
        // misspelt key
        (
            "retry = { attempts",
            "retries = { attempts",
            &["31:1: workflows.ticket.steps.who.retries: unknown key"],
        ),
        // unknown type
        (
            "\"andForEach\"",
            "\"forEach\"",
            &[
                "51:8: workflows.ticket.steps.each.type: unknown type \"forEach\"; did you mean andForEach?",
            ],
        ),
        // later step
        (
            "\"data.cents > 100\"",
            "\"steps.letter.text\"",
            &["40:8: workflows.ticket.steps.big.when: step letter has not run yet: it comes later"],
        ),
        // hyphen
        (
            "id = \"book\"",
            "id = \"book it\"",
            &[
                "56:6: workflows.ticket.blocks.line.\"book it\".id: a step id is a letter, then letters, digits, `_` or `-`",
            ],
        ),
        // unknown args
        (
            "args = { id =",
            "args = { ident =",
            &[
                "29:18: workflows.ticket.steps.who.args.ident: does not match the parameters of tool lookup: unknown key `ident`",
            ],
        ),
        // no deadline
        (
            ", deadline = \"2d\"",
            "",
            &["47:11: warning: workflows.ticket.blocks.ask.boss.suspend: has no deadline"],
        ),
        // model
        (
            "model = \"m\"",
            "model = \"n\"",
            &["5:9: agents.desk.model: model n is not configured; configured: m"],
        ),
    ];
    for (right, wrong, expected) in mistakes {
        assert_eq!(DESK.matches(right).count(), 1, "{right}");
        let problems = problems_of(&DESK.replace(right, wrong));
        let problems: Vec<_> =
            problems.iter().filter_map(|line| line.strip_prefix("c.toml:")).collect();
        assert_eq!(problems, *expected, "{wrong}");
    }
}
