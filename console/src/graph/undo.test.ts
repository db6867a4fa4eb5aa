import assert from "node:assert/strict";
import { test } from "node:test";
import type { WorkflowEvent, WorkflowStep } from "../api/types.ts";
import { fold } from "../execution/fold.ts";
import { lookOf, placesOf } from "../execution/looks.ts";
import { keyOf, nodeAt, nodesOf, startedAt, undonePath, undoOf } from "./definition.ts";
import { mermaidOf, svgOf } from "./export.ts";

const steps: WorkflowStep[] = [
  { id: "pay", name: "Pay", type: "andThen", purpose: "", compensation: "http" },
  { id: "lines", name: "lines", type: "andForEach", purpose: "", steps: [{ id: "reserve", name: "reserve", type: "andThen", purpose: "", block: "line", compensation: "run" }] },
  { id: "part", name: "part", type: "andWorkflow", purpose: "", workflowId: "part" },
];
const nodes = nodesOf(steps);

function event(type: WorkflowEvent["type"], second: number, path?: string): WorkflowEvent {
  const stepId = path?.split("/").at(-1)?.replace(":compensate", "");
  const timestamp = `2026-01-01T00:00:${String(second).padStart(2, "0")}.000Z`;
  return { type, executionId: "e", timestamp, ...(path ? { path, stepId, attempt: 1 } : {}) } as WorkflowEvent;
}

const events = [
  event("workflow-start", 0),
  event("step-start", 0, "pay"),
  event("step-complete", 1, "pay"),
  event("step-start", 1, "lines"),
  event("step-start", 1, "lines[0]/reserve"),
  event("step-complete", 2, "lines[0]/reserve"),
  event("workflow-compensating", 3),
  event("compensation-start", 3, "part:compensate"),
  event("compensation-complete", 4, "part:compensate"),
  event("compensation-start", 4, "lines[0]/reserve:compensate"),
  event("compensation-complete", 6, "lines[0]/reserve:compensate"),
  event("compensation-start", 6, "pay:compensate"),
  event("compensation-error", 7, "pay:compensate"),
].map((each, index) => ({ seq: index + 1, event: each }));

test("the path of a compensation belongs to its step", () => {
  assert.equal(nodeAt(nodes, "lines[2]/reserve:compensate")?.key, "lines/reserve");
  assert.equal(keyOf(nodes, undoOf("pay")), "pay");
  assert.deepEqual([undonePath("pay:compensate"), undonePath("pay")], ["pay", null]);
  assert.deepEqual(nodes.map((node) => node.undo), ["http", "", ""]);
});

test("compensations have looks of their own beside their steps", () => {
  const model = fold(events);
  const { places, unknown } = placesOf(model, nodes);
  assert.equal(unknown, 0, "none is missing in the definition");
  const now = Date.parse("2026-01-01T00:00:10.000Z");
  const look = (key: string) => lookOf(places.get(key), nodeAt(nodes, key) ?? undefined, now);
  assert.equal(look("pay").kind, "completed");
  assert.equal(look(undoOf("pay")).kind, "failed");
  assert.deepEqual(look(undoOf("lines/reserve")), { kind: "completed", text: "2.00 s" });
  assert.equal(look(undoOf("part")).kind, "completed", "a reversal, which no definition names");
  assert.equal(look(undoOf("lines")).kind, "none");
});

test("an execution that compensates is found", () => {
  const at = (path: string) => startedAt(nodeAt(nodes, path)!, path);
  assert.deepEqual(at("part"), { name: "Started", workflow: "part" });
  assert.deepEqual(at("part:compensate"), { name: "Reversal", workflow: "part" });
  assert.deepEqual(at("pay:compensate"), { name: "Started", workflow: null });
});

test("exports name what compensates a step", () => {
  assert.match(mermaidOf(nodes), /Pay · step · ↩ http/);
  assert.match(svgOf(nodes, "order"), /step · ↩ run/);
});
