import assert from "node:assert/strict";
import { test } from "node:test";
import { parseJson } from "../lib/json.ts";
import { align, isSame } from "./align.ts";

const step = (path: string, status: "completed" | "failed", output: unknown) => ({ stepId: path, path, status, attempts: 1, startedAt: null, endedAt: null, output });

test("steps stand beside each other by their path", () => {
  const left = [step("a", "completed", { x: 1, y: 2 }), step("b", "completed", 1), step("c", "failed", null)];
  const right = [step("a", "completed", { y: 2, x: 1 }), step("c", "completed", 1), step("d", "completed", 1)];
  assert.deepEqual(align(left, right).map((pair) => [pair.path, pair.differs]), [["a", null], ["b", "here"], ["c", "status"], ["d", "here"]]);
});

test("values are the same whatever the order of their names", () => {
  assert.ok(isSame({ a: [1, { b: null }] }, { a: [1, { b: null }] }));
  assert.ok(!isSame([1], { 0: 1 }));
  assert.ok(!isSame({ a: undefined }, { b: undefined }));
  assert.ok(!isSame({ a: 1 }, { a: 1, b: 2 }));
  assert.ok(isSame(parseJson("[9007199254740993]"), parseJson("[9007199254740993]")));
  assert.ok(!isSame(parseJson("[9007199254740993]"), parseJson("[9007199254740992]")));
});
