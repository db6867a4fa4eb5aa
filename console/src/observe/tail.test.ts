import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogEntry } from "../api/types.ts";
import { newIn, startOf, type Tail, withNewest, withOlder } from "./tail.ts";

const entry = (n: number | string): LogEntry => ({ timestamp: "2026-01-01T00:00:00.000Z", level: "info", msg: String(n), component: "c" });
const page = (from: number, until: number, nextCursor: string | null = "older") => ({ data: Array.from({ length: until - from + 1 }, (_, index) => entry(from + index)), nextCursor });
const texts = (tail: Tail): string[] => tail.lines.map(({ entry }) => entry.msg);

test("the newest come first, and lines keep their key", () => {
  const before = startOf(page(1, 3));
  const after = withNewest(before, page(2, 5, "other"));
  assert.deepEqual(texts(after), ["5", "4", "3", "2", "1"]);
  assert.deepEqual(after.lines.slice(2), before.lines);
  assert.equal(new Set(after.lines.map(({ key }) => key)).size, 5);
  assert.equal(after.cursor, "older");
  assert.equal(withNewest(after, page(2, 5)), after, "nothing new changes nothing");
});

test("older ones come behind, with their cursor", () => {
  const tail = withOlder(startOf(page(4, 5)), page(2, 3, null));
  assert.deepEqual(texts(tail), ["5", "4", "3", "2"]);
  assert.equal(tail.cursor, null);
  assert.equal(new Set(tail.lines.map(({ key }) => key)).size, 4);
});

test("a gap is not hidden: the list begins anew", () => {
  const before = startOf(page(1, 3));
  assert.equal(newIn(before, page(3, 9)), 6);
  assert.equal(newIn(before, page(4, 9)), null);
  assert.deepEqual(texts(withNewest(before, page(4, 6))), ["6", "5", "4"]);
});

test("equal records are told apart by what follows them", () => {
  const before = startOf({ data: [entry("a"), entry("same")], nextCursor: null });
  const next = { data: [entry("a"), entry("same"), entry("same")], nextCursor: null };
  assert.equal(newIn(before, next), 1);
  assert.deepEqual(texts(withNewest(before, next)), ["same", "same", "a"]);
  assert.deepEqual(texts(withNewest(startOf({ data: [], nextCursor: null }), page(1, 1))), ["1"]);
});
