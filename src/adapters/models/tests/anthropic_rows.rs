//! Answers in the format of messages.

use super::*;

pub(super) fn rows() -> Vec<(String, Vec<ModelEvent>)> {
    let usage = json!({ "input_tokens": 3, "cache_creation_input_tokens": 2,
                        "cache_read_input_tokens": 4, "output_tokens": 1 });
    let end_usage = json!({ "output_tokens": 5,
                            "output_tokens_details": { "thinking_tokens": 2 } });
    let start = |index: u64, block: Value| json!({ "type": "content_block_start", "index": index, "content_block": block });
    let delta = |index: u64, delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    let stop = |index: u64| json!({ "type": "content_block_stop", "index": index });
    let streamed = [
        json!({ "type": "message_start", "message": { "usage": usage } }),
        start(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
        json!({ "type": "ping" }),
        delta(0, json!({ "type": "thinking_delta", "thinking": "hm" })),
        delta(0, json!({ "type": "signature_delta", "signature": "sig" })),
        stop(0),
        start(1, json!({ "type": "text", "text": "" })),
        delta(1, json!({ "type": "text_delta", "text": "Hi" })),
        stop(1),
        start(2, json!({ "type": "tool_use", "id": "t", "name": "files_read", "input": {} })),
        delta(2, json!({ "type": "input_json_delta", "partial_json": "{\"p\":" })),
        delta(2, json!({ "type": "input_json_delta", "partial_json": "1}" })),
        stop(2),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" },
                "usage": end_usage }),
        json!({ "type": "message_stop" }),
    ];
    let block = json!({ "type": "thinking", "thinking": "hm", "signature": "sig" });
    let whole = json!({ "type": "message", "content": [
        block, { "type": "text", "text": "Hi" },
        { "type": "tool_use", "id": "t", "name": "files_read", "input": { "p": 1 } } ],
        "stop_reason": "tool_use",
        "usage": { "input_tokens": 3, "cache_creation_input_tokens": 2,
                   "cache_read_input_tokens": 4, "output_tokens": 5,
                   "output_tokens_details": { "thinking_tokens": 2 } } });
    let thoughts = state("anthropic", json!({ "blocks": [block] }));
    let end = finished(FinishReason::ToolCalls, [9, 4, 5, 2]);
    let reading = call("t", "files.read", json!({ "p": 1 }));
    let refused = json!({ "type": "message", "content": [], "stop_reason": "refusal" });
    vec![
        (
            events(&streamed),
            vec![
                thought("hm"),
                text("Hi"),
                begun("t"),
                more("t", "{\"p\":"),
                more("t", "1}"),
                reading.clone(),
                thoughts.clone(),
                end.clone(),
            ],
        ),
        (
            whole.to_string(),
            vec![
                thought("hm"),
                text("Hi"),
                begun("t"),
                more("t", "{\"p\":1}"),
                reading,
                thoughts,
                end,
            ],
        ),
        (refused.to_string(), vec![finished(FinishReason::ContentFilter, [0; 4])]),
    ]
}
