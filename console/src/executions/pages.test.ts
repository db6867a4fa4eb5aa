import assert from "node:assert/strict";
import { test } from "node:test";
import type { ExecutionItem } from "../api/types.ts";
import { merge, type Shown } from "./pages.ts";

const item = (executionId: string, startAt: string): ExecutionItem => ({ executionId, startAt }) as ExecutionItem;
const list = (rows: ExecutionItem[], cursor: string | null = null): Shown => ({ rows, fresh: [], gone: new Set(), parts: [], cursor, error: null, at: 0 });
const page = (executions: ExecutionItem[], nextCursor: string | null = null) => ({ executions, nextCursor });
const start = (each: ExecutionItem): string => each.startAt;

test("what matches only now is fresh, unless it belongs behind what was read", () => {
  const read = page([item("d", "4"), item("c", "3"), item("b", "2.5"), item("old", "1")]);
  const fresh = (cursor: string | null): string[] => merge(list([item("c", "3"), item("a", "2")], cursor), read, null, start).fresh.map((each) => each.executionId);
  assert.deepEqual(fresh("more"), ["d", "b"]);
  assert.deepEqual(fresh(null), ["d", "b", "old"]);
});

test("rows change in place", () => {
  const after = merge(list([item("b", "2"), item("a", "1")]), page([{ ...item("a", "1"), status: "completed" }]), null, start);
  assert.deepEqual(after.rows?.map((row) => row.executionId), ["b", "a"]);
  assert.equal(after.rows?.[1]?.status, "completed");
});

test("what a page passes over is gone until it is back, and what is behind it is not", () => {
  const rows = (): ExecutionItem[] => ["6", "5", "4", "3", "2"].map((at) => item(`at-${at}`, at));
  const gone = (after: Shown): string[] => [...after.gone].map((id) => id.slice(3));
  const some = [item("at-6", "6"), item("at-4", "4")];
  const after = merge(list(rows()), page(some, "more"), null, start);
  assert.deepEqual(gone(after), ["5"]);
  assert.deepEqual(gone(merge(after, page([item("at-5", "5")], "more"), null, start)), ["6"]);
  assert.deepEqual(gone(merge(list(rows()), page(some), null, start)), ["5", "3", "2"], "the end of the list");
  assert.deepEqual(gone(merge(list(rows()), page([], "more"), null, start)), [], "a search that found nothing yet");
  // Executions that began at once are not told apart by the time.
  assert.deepEqual(gone(merge(list([item("a", "6"), item("b", "6")]), page([item("a", "6")], "more"), null, start)), []);
});

test("a page behind the first one says nothing of what is before it", () => {
  const before = { ...list(["6", "5", "4", "3", "2"].map((at) => item(`at-${at}`, at))), fresh: [item("new", "7")] };
  const after = merge(before, page([{ ...item("at-3", "3"), status: "completed" }, item("other", "2.5")]), "5", start);
  assert.deepEqual([...after.gone], ["at-4", "at-2"]);
  assert.equal(after.rows?.[3]?.status, "completed");
  assert.deepEqual(after.fresh.map((each) => each.executionId), ["new"]);
});
