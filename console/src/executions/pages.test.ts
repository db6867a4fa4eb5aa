import assert from "node:assert/strict";
import { test } from "node:test";
import type { ExecutionItem } from "../api/types.ts";
import { merge } from "./pages.ts";

const item = (executionId: string, startAt: string): ExecutionItem => ({ executionId, startAt }) as ExecutionItem;

test("what matches only now is fresh, unless it belongs behind what was read", () => {
  const list = (cursor: string | null) => ({ rows: [item("c", "3"), item("a", "2")], fresh: [] as ExecutionItem[], cursor, error: null, at: 0 });
  const page = [item("d", "4"), item("c", "3"), item("b", "2.5"), item("old", "1")];
  const fresh = (cursor: string | null): string[] => merge(list(cursor), page, (each) => each.startAt).fresh.map((each) => each.executionId);
  assert.deepEqual(fresh("more"), ["d", "b"]);
  assert.deepEqual(fresh(null), ["d", "b", "old"]);
});

test("rows change in place", () => {
  const rows = [item("b", "2"), item("a", "1")];
  const before = { rows, fresh: [] as ExecutionItem[], cursor: null, error: null, at: 0 };
  const after = merge(before, [{ ...item("a", "1"), status: "completed" }], (each) => each.startAt);
  assert.deepEqual(after.rows?.map((row) => row.executionId), ["b", "a"]);
  assert.equal(after.rows?.[1]?.status, "completed");
});
