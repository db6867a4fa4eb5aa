import assert from "node:assert/strict";
import { test } from "node:test";
import type { SpanNode, WorkflowEvent } from "../api/types.ts";
import { fold } from "./fold.ts";
import { busyOf, callsOf, rowsOf } from "./rows.ts";

function model(...events: Partial<WorkflowEvent>[]) {
  return fold(events.map((event, index) => ({ seq: index + 1, event: { executionId: "e", timestamp: new Date(index * 1000).toISOString(), ...event } as WorkflowEvent })));
}

const span = (spanId: string, name: string, attributes: Record<string, unknown>, children: SpanNode[] = []): SpanNode =>
  ({ traceId: "t", spanId, name, kind: "INTERNAL", startTime: "1970-01-01T00:00:01Z", endTime: "1970-01-01T00:00:02Z", attributes, status: { code: "OK" }, events: [], children, depth: 0 }) as SpanNode;

test("a failed attempt, the pause behind it and the next one are pieces", () => {
  const rows = rowsOf(
    model({ type: "workflow-start" }, { type: "step-start", from: "a" }, { type: "step-error", from: "a", error: "no", attempt: 1, willRetry: true }, { type: "step-start", from: "a" }, { type: "step-complete", from: "a" }),
    new Map(),
    () => false,
  );
  assert.deepEqual(rows[0]?.pieces.map((piece) => [piece.as, piece.from, piece.until]), [["failed", 1000, 2000], ["pause", 2000, 3000], ["run", 3000, 4000]]);
});

test("the pause before a retry begins where its attempt failed, also after a wait", () => {
  const rows = rowsOf(
    model({ type: "step-suspended", from: "a", reason: "?" }, { type: "step-resumed", from: "a" }, { type: "step-error", from: "a", error: "no", attempt: 1, willRetry: true }),
    new Map(),
    () => false,
  );
  assert.deepEqual(rows[0]?.pieces.map((piece) => [piece.as, piece.from, piece.until]), [["failed", 1000, 2000], ["wait", 0, 1000], ["pause", 2000, null]]);
});

test("rows of rounds say which, and a container is not busy while what is in it waits", () => {
  const rows = rowsOf(
    model({ type: "workflow-start" }, { type: "step-start", from: "each" }, { type: "step-suspended", from: "ask", path: "each[2]/ask", reason: "?" }),
    new Map(),
    () => false,
  );
  assert.deepEqual(rows.map((row) => [row.label, row.depth, row.kind]), [["each", 0, "waiting"], ["ask [2]", 1, "waiting"]]);
  assert.deepEqual(busyOf(rows), []);
});

test("what a step called is found in the trace, and a child can be opened", () => {
  const child = span("c", "invoke_workflow pay", { "entity.id": "pay", "workflow.execution.id": "other" }, [span("x", "step y", { "workflow.execution.id": "other", "workflow.step.path": "y" })]);
  const tree = [span("r", "invoke_workflow w", {}, [span("s", "step a", { "workflow.execution.id": "e", "workflow.step.path": "a" }, [child, span("w", "wait a", {})])])];
  const calls = callsOf(tree, "e");
  assert.deepEqual([...calls.keys()], ["a"]);
  const rows = rowsOf(model({ type: "workflow-start" }, { type: "step-start", from: "a" }), calls, () => false);
  assert.deepEqual(rows.map((row) => row.label), ["a", "workflow pay"]);
  assert.deepEqual(rows[1]?.child, { workflowId: "pay", executionId: "other" });
});

test("a child that the trace does not have stands under its step, once", () => {
  const children = new Map([["a", { workflowId: "pay", executionId: "other" }]]);
  const begun = model({ type: "workflow-start" }, { type: "step-start", from: "a" }, { type: "step-start", from: "b" });
  assert.deepEqual(rowsOf(begun, new Map(), () => false, children).map((row) => [row.label, row.child?.executionId]), [["a", undefined], ["workflow pay", "other"], ["b", undefined]]);
  const known = new Map([["a", [span("c", "chat m", {})]]]);
  assert.deepEqual(rowsOf(begun, known, () => false, children).map((row) => row.label), ["a", "turn m", "b"]);
});

test("a compensation is told apart from its step", () => {
  const begun = model({ type: "workflow-start" }, { type: "step-start", from: "a" }, { type: "step-complete", from: "a" }, { type: "compensation-start", from: "a", path: "a:compensate" }, { type: "compensation-start", from: "b", path: "each[2]/b:compensate" });
  assert.deepEqual(rowsOf(begun, new Map(), () => false).map((row) => row.label), ["a", "↩ a", "↩ b [2]"]);
});
