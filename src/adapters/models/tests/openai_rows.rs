//! Answers in the format of chat completions.

use super::*;

type Row = (String, Vec<ModelEvent>);

pub(super) fn rows() -> Vec<Row> {
    [texts(), calls()].concat()
}

fn usage() -> Value {
    json!({ "prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14,
        "prompt_tokens_details": { "cached_tokens": 4 },
        "completion_tokens_details": { "reasoning_tokens": 2 } })
}

fn end(reason: &str) -> Value {
    json!({ "choices": [{ "delta": {}, "finish_reason": reason }] })
}

fn texts() -> Vec<Row> {
    let streamed = [
        choice(&json!({ "role": "assistant", "content": "" })),
        choice(&json!({ "reasoning_content": "hm" })),
        choice(&json!({ "content": "Grüße" })),
        choice(&json!({ "content": " 🙂" })),
        end("stop"),
        json!({ "choices": [], "usage": usage() }),
    ];
    // the same reasoning in both fields, as vLLM sends it
    let twice = choice(&json!({ "reasoning": "hm", "reasoning_content": "hm" }));
    // reasoning that does not count as completion, as xAI counts
    let apart = json!({ "prompt_tokens": 12, "completion_tokens": 1, "total_tokens": 399,
        "completion_tokens_details": { "reasoning_tokens": 386 } });
    let refused =
        json!({ "choices": [{ "message": { "refusal": "no" }, "finish_reason": "stop" }] });
    vec![
        (
            events(&streamed) + "data: [DONE]\n\n",
            vec![
                thought("hm"),
                text("Grüße"),
                text(" 🙂"),
                finished(FinishReason::Stop, [9, 4, 5, 2]),
            ],
        ),
        (
            events(&[choice(&json!({ "content": "x" }))]) + "data: [DONE]\n\n",
            vec![text("x"), finished(FinishReason::Stop, [0; 4])],
        ),
        (
            events(&[choice(&json!({ "content": "x" })), end("length")]),
            vec![text("x"), finished(FinishReason::Length, [0; 4])],
        ),
        (
            events(&[twice, end("stop"), json!({ "choices": [], "usage": apart })]),
            vec![thought("hm"), finished(FinishReason::Stop, [12, 0, 387, 386])],
        ),
        (refused.to_string(), vec![text("no"), finished(FinishReason::ContentFilter, [0; 4])]),
    ]
}

fn calls() -> Vec<Row> {
    let piece = |index: u64, id: &str, name: &str, arguments: &str| {
        choice(&json!({ "tool_calls": [{ "index": index, "id": id,
            "function": { "name": name, "arguments": arguments } }] }))
    };
    let streamed = [
        choice(&json!({ "reasoning_content": "h" })),
        choice(&json!({ "reasoning_content": "m" })),
        piece(0, "a", "files_read", "{\"p\""),
        piece(0, "", "", ":1}"),
        piece(u64::MAX, "b", "files_read", ""),
        end("tool_calls"),
    ];
    // every call the number 0, arguments that are no JSON
    let odd = [piece(0, "a", "files_read", "{}"), piece(0, "b", "made_up", "{oops"), end("stop")];
    let whole = json!({ "choices": [{ "message": { "content": "Hi", "tool_calls": [
        { "id": "a", "function": { "name": "files_read", "arguments": "{}" } },
        { "id": "b", "function": { "name": "files_read", "arguments": "{\"p\":2}" } } ] },
        "finish_reason": "stop" }], "usage": usage() });
    vec![
        (
            events(&streamed),
            vec![
                thought("h"),
                thought("m"),
                begun("a"),
                more("a", "{\"p\""),
                more("a", ":1}"),
                begun("b"),
                call("a", "files.read", json!({ "p": 1 })),
                call("b", "files.read", json!({})),
                state("openai", json!({ "reasoning_content": "hm" })),
                finished(FinishReason::ToolCalls, [0; 4]),
            ],
        ),
        (
            events(&odd),
            vec![
                begun("a"),
                more("a", "{}"),
                call("a", "files.read", json!({})),
                ModelEvent::ToolInputStart {
                    tool_call_id: "b".into(),
                    tool_name: "made_up".into(),
                },
                more("b", "{oops"),
                call("b", "made_up", json!("{oops")),
                finished(FinishReason::ToolCalls, [0; 4]),
            ],
        ),
        (
            whole.to_string(),
            vec![
                text("Hi"),
                begun("a"),
                more("a", "{}"),
                begun("b"),
                more("b", "{\"p\":2}"),
                call("a", "files.read", json!({})),
                call("b", "files.read", json!({ "p": 2 })),
                finished(FinishReason::ToolCalls, [9, 4, 5, 2]),
            ],
        ),
    ]
}
