import assert from "node:assert/strict";
import { test } from "node:test";
import type { WorkflowEvent } from "../api/types.ts";
import type { Numbered } from "./fold.ts";
import { Cut, keptMax, Values, valueMax } from "./values.ts";

function completed(seq: number, output: unknown): Numbered {
  return { seq, event: { type: "step-complete", executionId: "e", timestamp: "", from: "a", output } as WorkflowEvent };
}

test("a large value is not kept, and can be read again", () => {
  const [small, large] = [completed(1, { a: 1 }), completed(2, { text: "x", more: [1] })];
  const values = new Values();
  values.take(small, valueMax);
  values.take(large, valueMax + 1);
  assert.deepEqual(small.event.output, { a: 1 });
  const cut = large.event.output;
  assert.ok(cut instanceof Cut);
  assert.deepEqual([cut.seq, cut.letters, cut.preview], [2, valueMax + 1, "{ text, more }"]);
  assert.equal(cut.of(completed(2, "again").event), "again");
});

test("of many values the newest are kept", () => {
  const values = new Values();
  const size = keptMax / 2000;
  const all = Array.from({ length: 5000 }, (_, n) => values.take(completed(n + 1, n), size));
  const kept = all.filter(({ event }) => !(event.output instanceof Cut)).map(({ seq }) => seq);
  assert.deepEqual([kept.length, kept[0], kept.at(-1)], [2000, 3001, 5000]);
});

test("an event without a value stays as it is", () => {
  const { event } = new Values().take({ seq: 1, event: { type: "step-start", executionId: "e", timestamp: "" } as WorkflowEvent }, valueMax * 2);
  assert.deepEqual(Object.keys(event), ["type", "executionId", "timestamp"]);
});
