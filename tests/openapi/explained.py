"""Failures that say nothing against the server: what schemathesis cannot know of it.

Each row is as narrow as can be: the operations, what schemathesis says, the refusal's code and
its text.
"""

import json
import pathlib
import re

import schemathesis

# The document describes what agents are asked in plain schemas, for the makers of clients. What
# the server takes is narrower: with these, data that fit are data that are taken.
STRICT = json.loads(pathlib.Path(__file__).with_name("strict.json").read_text())

REJECTED = "ST202"  # what fits the schema was refused
ACCEPTED = "ST201"  # what does not fit the schema was not refused as such
FAILED = "ST101"  # status 5xx
OF_EXECUTION = r"POST /workflows/.+/executions/\{executionId\}"

EXPLAINED = [
    # No schema can pair calls with their results.
    (
        r"POST /agents/\{id\}/(text|stream|chat|object|stream-object)",
        REJECTED,
        "body_invalid",
        r"the call has no result after it|no earlier call has this id",
    ),
    # What a JSON Schema may be takes a document of its own, which ours does not refer to.
    (r"POST /agents/\{id\}/(object|stream-object)", REJECTED, "schema_invalid", ""),
    # Some schemas admit nothing at all: no model could answer.
    (
        r"POST /agents/\{id\}/(object|stream-object)",
        FAILED,
        "provider_error",
        "no sample found that meets the schema",
    ),
    # What fits depends on the name in the path: the paths of single ones say it.
    (r"POST /tools/\{name\}/execute", REJECTED, "tool_input_invalid", ""),
    (r"POST /workflows/\{id\}/(execute|stream)", REJECTED, "input_invalid", ""),
    (r"POST /workflows/\{id\}/(execute|stream)", REJECTED, "body_invalid", "input: must be an object"),
    # What has ended can be looked at, and no more.
    (OF_EXECUTION + "/(suspend|cancel)", REJECTED, "execution_not_running", ""),
    (r"POST /agents/\{id\}/generations/\{generationId\}/cancel", REJECTED, "generation_not_running", ""),
    # Executions are selected by the query or by the body.
    (r"POST /workflows/executions/bulk", REJECTED, "request_invalid", "are selected either"),
    (r"POST /workflows/executions/bulk", REJECTED, "body_invalid", r"options\.|executionIds"),
    # Which step waits, and for what, is known at that moment alone.
    (OF_EXECUTION + "/resume", REJECTED, "step_not_found|suspension_passed", ""),
    # Who may be named is whoever can be named in a path.
    (OF_EXECUTION + "/(suspend|resume|cancel|replay)", REJECTED, "body_invalid", "options.userId: "),
    (OF_EXECUTION + "/resume", REJECTED, "resume_data_invalid", ""),
    # Which steps there are, and what they and the workflow take, is the original's to say.
    (OF_EXECUTION + "/replay", REJECTED, "step_(not_found|not_replayable|does_not_suspend)", ""),
    (OF_EXECUTION + "/replay", REJECTED, "(resume_data|input)_invalid", ""),
    # It asks for these, but opens no WebSocket: it is told so before anything else.
    (r"GET /ws(/observability|/logs)?", REJECTED, "upgrade_required", ""),
    (r"GET /ws(/observability|/logs)?", ACCEPTED, "upgrade_required", ""),
]


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Puts the strict schemas in the place of the plain ones."""
    schemas = raw_schema["components"]["schemas"]
    missing = STRICT.keys() - schemas.keys()
    assert not missing, f"the document has no {missing}"
    schemas.update(STRICT)


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Keeps a failure unless a row explains it."""
    refusal = response.headers.get("x-error-code", [""])[0]
    return not any(
        failure.code == said
        and re.fullmatch(code, refusal)
        and re.search(text, response.text)
        and re.fullmatch(operations, case.operation.label)
        for operations, said, code, text in EXPLAINED
    )
