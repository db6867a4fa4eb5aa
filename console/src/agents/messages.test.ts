import assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryEntry, UiMessage } from "../api/types.ts";
import { answering, type ChatFrame, type Message, receive, stopped, stored, unanswered } from "./messages.ts";

function run(frames: ChatFrame[], before: readonly Message[] = []): readonly Message[] {
  return frames.reduce(receive, before);
}

const asking: ChatFrame[] = [
  { type: "start", messageId: "m" },
  { type: "tool-input-start", toolCallId: "c", toolName: "refund" },
  { type: "tool-input-delta", toolCallId: "c", inputTextDelta: '{"amount":' },
  { type: "tool-input-delta", toolCallId: "c", inputTextDelta: "5}" },
  { type: "tool-input-available", toolCallId: "c", toolName: "refund", input: { amount: 5 } },
  { type: "tool-approval-request", toolCallId: "c", approvalId: "ask_1" },
  { type: "finish", messageMetadata: { finishReason: "tool-calls", usage: { inputTokens: 7, outputTokens: 3 } } },
];

test("text comes in pieces, and ids of texts begin anew with every turn", () => {
  const text = (delta: string): ChatFrame[] => [{ type: "text-start", id: "t" }, { type: "text-delta", id: "t", delta }, { type: "text-end", id: "t" }];
  const [message] = run([{ type: "start", messageId: "m" }, ...text("one"), ...text("two")]);
  assert.deepEqual(message?.parts.map((part) => part.type === "text" && part.text), ["one", "two"]);
});

test("a call that needs an approval asks, and goes on in the same message", () => {
  const asked = run(asking);
  assert.deepEqual(asked[0]?.parts[0], { type: "tool", toolCallId: "c", name: "refund", state: "asks", inputText: '{"amount":5}', input: { amount: 5 }, askId: "ask_1" });
  assert.deepEqual(asked[0]?.tokens, { input: 7, output: 3 });
  const done = run([{ type: "start", messageId: "m" }, { type: "tool-output-available", toolCallId: "c", output: "ok" }], asked);
  assert.equal(done.length, 1);
  const [part] = done[0]?.parts ?? [];
  assert.ok(part?.type === "tool" && part.state === "done" && part.output === "ok");
});

test("an answer is the message with the state of its call", () => {
  const [message] = run(asking);
  const sent = answering(message as Message, new Map([["c", { kind: "approval", approved: false, reason: "no" }]]));
  assert.deepEqual(sent, {
    id: "m",
    role: "assistant",
    parts: [{ type: "tool-refund", toolCallId: "c", input: { amount: 5 }, state: "approval-responded", approval: { id: "ask_1", approved: false, reason: "no" } }],
  });
});

test("a question goes when its call has an output", () => {
  const asked = run([
    { type: "start", messageId: "m" },
    { type: "tool-input-start", toolCallId: "c", toolName: "ask_user" },
    { type: "data-ask", data: { askId: "a", toolCallId: "c", question: "why?", schema: {} } },
  ]);
  assert.deepEqual(asked[0]?.parts.map((part) => part.type), ["tool", "ask"]);
  const done = receive(asked, { type: "tool-output-available", toolCallId: "c", output: 1 });
  assert.deepEqual(done[0]?.parts.map((part) => part.type), ["tool"]);
});

test("what is not known changes nothing", () => {
  const before = run(asking);
  assert.deepEqual(receive(before, { type: "data-weather" }), before);
});

test("stored messages have the parts of the stream", () => {
  const [message] = stored([
    { id: "m", role: "assistant", metadata: { createdAt: "" }, parts: [{ type: "tool-refund", toolCallId: "c", state: "approval-requested", input: {}, approval: { id: "a" } }, { type: "text", text: "hi" }] } as never,
  ]);
  assert.deepEqual(message?.parts.map((part) => (part.type === "tool" ? part.state : part.type)), ["asks", "text"]);
});

test("a stored answer that was stopped says so", () => {
  const known = stored([{ id: "g1-0", role: "user", parts: [] }, { id: "g1", role: "assistant", parts: [] }, { id: "g2", role: "assistant", parts: [] }] as unknown as UiMessage[]);
  const entries = [{ id: "g2", status: "completed" }, { id: "g1", status: "cancelled" }] as HistoryEntry[];
  assert.deepEqual(stopped(known, entries).map((message) => message.isAborted ?? false), [false, true, false]);
});

test("what was asked last and not answered comes from the history", () => {
  const entry = (id: string, status: string, more: object = {}) => ({ id, status, conversationId: "c", input: `ask ${id}`, steps: [], error: null, ...more }) as unknown as HistoryEntry;
  const known = stored([{ id: "g1-0", role: "user", parts: [{ type: "text", text: "ask g1" }] }, { id: "g1", role: "assistant", parts: [] }] as unknown as UiMessage[]);
  const entries = [
    entry("g5", "working"),
    entry("g4", "cancelled", { steps: [{ text: "half" }], input: [{ role: "user", parts: [{ type: "text", text: "from a page" }] }] }),
    entry("other", "error", { conversationId: "d" }),
    entry("g3", "error", { error: "no model" }),
    entry("g1", "completed"),
    entry("g0", "cancelled"),
  ];
  const shown = unanswered(known, entries, "c").map(({ id, parts, isAborted, error }) => [id, parts.map((part) => (part.type === "text" ? part.text : "")).join(), isAborted ?? false, error ?? ""]);
  assert.deepEqual(shown, [
    ["g3-0", "ask g3", false, ""],
    ["g3", "", false, "no model"],
    ["g4-0", "from a page", false, ""],
    ["g4", "half", true, ""],
    ["g5-0", "ask g5", false, ""],
    ["g5", "", false, ""],
  ]);
});
