import assert from "node:assert/strict";
import { test } from "node:test";
import type { WorkflowEvent } from "../api/types.ts";
import { fold, type Numbered, parents } from "./fold.ts";

/** Events with numbers from 1, a second apart. */
function record(...events: Partial<WorkflowEvent>[]): Numbered[] {
  return events.map((event, index) => ({
    seq: index + 1,
    event: { executionId: "e", timestamp: `2026-01-01T00:00:${String(index).padStart(2, "0")}.000Z`, ...event } as WorkflowEvent,
  }));
}

const start = { type: "workflow-start" } as const;
const kinds = (events: Numbered[], until?: number): Record<string, string> =>
  Object.fromEntries([...fold(events, until).steps].map(([path, step]) => [path, step.kind]));

test("a step runs, completes, and the workflow with it", () => {
  const events = record(start, { type: "step-start", from: "a" }, { type: "step-complete", from: "a", output: 7 }, { type: "workflow-complete", result: 7 });
  const model = fold(events);
  assert.equal(model.kind, "completed");
  assert.equal(model.result, 7);
  assert.equal(model.steps.get("a")?.output, 7);
  assert.equal(model.steps.get("a")?.attempts[0]?.until, "2026-01-01T00:00:02.000Z");
});

test("an earlier number shows what was then", () => {
  const events = record(start, { type: "step-start", from: "a" }, { type: "step-complete", from: "a", output: 7 }, { type: "workflow-complete" });
  assert.equal(fold(events, 2).kind, "running");
  assert.deepEqual(kinds(events, 2), { a: "running" });
  assert.equal(fold(events, 2).steps.get("a")?.output, undefined);
});

test("each failed attempt is kept", () => {
  const events = record(
    start,
    { type: "step-start", from: "a" },
    { type: "step-error", from: "a", error: "no", errorKind: "http", errorStatus: 503, attempt: 1, willRetry: true },
    { type: "step-start", from: "a" },
    { type: "step-error", from: "a", error: "never", attempt: 2, willRetry: false },
    { type: "workflow-error", error: "never" },
  );
  assert.deepEqual(kinds(events, 3), { a: "retrying" });
  const step = fold(events).steps.get("a");
  assert.equal(step?.kind, "failed");
  assert.deepEqual(step?.attempts.map((attempt) => [attempt.number, attempt.error, attempt.errorKind]), [[1, "no", "http 503"], [2, "never", undefined]]);
});

test("an answer ends the wait that it names", () => {
  const events = record(
    start,
    { type: "step-suspended", from: "ask", reason: "well?", suspensionId: "s1", payload: { n: 1 } },
    { type: "workflow-suspended", suspension: { suspendedAt: "", reason: "well?", stepId: "ask", path: "ask" } },
    { type: "step-resumed", from: "ask", suspensionId: "s1", resumeData: true, resumedBy: { id: "lea", verified: false } },
    { type: "step-complete", from: "ask" },
  );
  assert.equal(fold(events, 3).kind, "waiting");
  assert.equal(fold(events, 4).kind, "running");
  const wait = fold(events).steps.get("ask")?.waits[0];
  assert.deepEqual([wait?.data, wait?.answeredBy?.id, wait?.until !== null, wait?.ended], [true, "lea", true, "answered"]);
});

test("a wait ends with its attempt, and the answer to a later one lets the step run", () => {
  const events = record(
    start,
    { type: "step-start", from: "order" },
    { type: "step-suspended", from: "order", reason: "first?", suspensionId: "s1" },
    { type: "step-error", from: "order", error: "no", attempt: 1, willRetry: true },
    { type: "step-start", from: "order" },
    { type: "step-suspended", from: "order", reason: "second?", suspensionId: "s2" },
    { type: "step-resumed", from: "order", suspensionId: "s2", resumeData: true },
  );
  assert.deepEqual(kinds(events, 4), { order: "retrying" });
  assert.deepEqual(kinds(events, 6), { order: "waiting" });
  assert.deepEqual(kinds(events), { order: "running" });
  const waits = fold(events).steps.get("order")?.waits;
  assert.deepEqual(waits?.map((wait) => [wait.ended, wait.until?.slice(17, 19)]), [["failed", "03"], ["answered", "06"]]);
});

test("a step that ends takes all its open waits with it", () => {
  const ends: [Partial<WorkflowEvent>, string][] = [
    [{ type: "step-error", from: "both", error: "too late", willRetry: false }, "failed"],
    [{ type: "step-cancelled", from: "both" }, "cancelled"],
    [{ type: "step-skipped", from: "both" }, "skipped"],
    [{ type: "step-complete", from: "both" }, "completed"],
    [{ type: "workflow-cancelled", reason: "no tea" }, "cancelled"],
  ];
  for (const [end, ended] of ends) {
    const ask = { type: "step-suspended", from: "both", reason: "?" } as const;
    const events = record(start, { type: "step-start", from: "both" }, { ...ask, suspensionId: "s1" }, { ...ask, suspensionId: "s2" }, end);
    const step = fold(events).steps.get("both");
    assert.equal(step?.kind, ended);
    assert.deepEqual(step?.waits.map((wait) => [wait.ended, wait.until !== null]), [[ended, true], [ended, true]], end.type);
  }
});

test("the start behind an answer is no further attempt, and an interrupted attempt ends where the next begins", () => {
  const ask = { from: "a", suspensionId: "s" };
  const answered = record(start, { type: "step-suspended", reason: "", ...ask }, { type: "step-resumed", ...ask }, { type: "step-start", from: "a" }, { type: "step-complete", from: "a" });
  assert.equal(fold(answered).steps.get("a")?.attempts.length, 1);
  const crashed = record(start, { type: "step-start", from: "a" }, { type: "step-start", from: "a" }, { type: "step-complete", from: "a" });
  assert.deepEqual(fold(crashed).steps.get("a")?.attempts.map((attempt) => attempt.until?.slice(17, 19)), ["02", "03"]);
});

test("a pause is told from a question, and steps in flight do not lift it", () => {
  const hold = { suspendedAt: "", reason: "later", stepId: "a", path: "a", suspendedBy: { id: "lea", verified: true }, pause: true };
  const events = record(start, { type: "step-start", from: "a" }, { type: "workflow-suspended", suspension: hold }, { type: "step-complete", from: "a" }, { type: "workflow-resumed" });
  assert.equal(fold(events, 4).kind, "held");
  assert.equal(fold(events, 4).hold?.reason, "later");
  assert.equal(fold(events).kind, "running");
  assert.equal(fold(events).hold, null);
});

test("a container waits if everything in it does", () => {
  const inside = (id: string): Partial<WorkflowEvent> => ({ type: "step-start", from: id, path: `all/${id}/${id}` });
  const events = record(start, { type: "step-start", from: "all" }, inside("x"), inside("y"), { type: "step-suspended", from: "x", path: "all/x/x", reason: "" }, { type: "step-complete", from: "y", path: "all/y/y" });
  assert.equal(kinds(events, 5).all, "running");
  assert.equal(kinds(events).all, "waiting");
});

test("what was under way when the workflow ended is not left running", () => {
  const events = record(start, { type: "step-start", from: "nap" }, { type: "workflow-cancelled", reason: "no tea" });
  assert.deepEqual(kinds(events), { nap: "cancelled" });
  assert.equal(fold(events).reason, "no tea");
});

test("parents are found through blocks and rounds", () => {
  assert.deepEqual(parents("a[2]/b/c/d"), ["a[2]", "a", "a[2]/b", "a[2]/b/c"]);
});

test("a compensation that was skipped is not completed, in older records neither", () => {
  const skip = (complete: Partial<WorkflowEvent>): Record<string, string> =>
    kinds(
      record(
        start,
        { type: "compensation-start", from: "a", path: "a:compensate" },
        { type: "step-suspended", from: "a", path: "a:compensate", reason: "it failed", suspensionId: "s1" },
        { type: "step-resumed", from: "a", path: "a:compensate", suspensionId: "s1", ...complete },
        { type: "compensation-complete", from: "a", path: "a:compensate", ...complete },
      ),
    );
  assert.deepEqual(skip({ skipped: true }), { "a:compensate": "skipped" });
  assert.deepEqual(skip({ resumeData: { action: "skip" } }), { "a:compensate": "skipped" });
  assert.deepEqual(skip({ resumeData: { action: "retry" } }), { "a:compensate": "completed" });
});
