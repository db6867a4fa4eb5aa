//! Answers in the format of `generateContent`.

use super::*;

pub(super) fn rows() -> Vec<(String, Vec<ModelEvent>)> {
    let parts = |parts: Value, reason: Value| {
        json!({ "candidates": [{ "content": { "parts": parts }, "finishReason": reason }],
                "usageMetadata": { "promptTokenCount": 9, "cachedContentTokenCount": 4,
                    "candidatesTokenCount": 3, "thoughtsTokenCount": 2, "totalTokenCount": 14 } })
    };
    let streamed = [
        parts(json!([{ "text": "hm", "thought": true }]), Value::Null),
        parts(json!([{ "text": "Hi" }]), Value::Null),
        parts(json!([{ "text": "", "thoughtSignature": "s" }]), json!("STOP")),
    ];
    let reading = json!({ "functionCall": { "name": "files_read", "id": "x", "args": { "p": 1 } },
                          "thoughtSignature": "s" });
    let called = parts(json!([reading]), json!("STOP"));
    let blocked = json!({ "promptFeedback": { "blockReason": "SAFETY" } });
    vec![
        (
            events(&streamed),
            vec![
                thought("hm"),
                text("Hi"),
                state("gemini", json!({ "text": "s" })),
                finished(FinishReason::Stop, [9, 4, 5, 2]),
            ],
        ),
        (
            called.to_string(),
            vec![
                call("x", "files.read", json!({ "p": 1 })),
                state("gemini", json!({ "calls": { "x": "s" } })),
                finished(FinishReason::ToolCalls, [9, 4, 5, 2]),
            ],
        ),
        (
            json!([
                parts(json!([{ "text": "a" }]), Value::Null),
                parts(json!([{ "text": "b" }]), json!("MAX_TOKENS"))
            ])
            .to_string(),
            vec![text("a"), text("b"), finished(FinishReason::Length, [9, 4, 5, 2])],
        ),
        (events(&[blocked]), vec![finished(FinishReason::ContentFilter, [0; 4])]),
    ]
}
