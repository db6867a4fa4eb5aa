import assert from "node:assert/strict";
import { test } from "node:test";
import { absolute } from "./time.ts";

test("a time has its day, and its year, where they are others than now", () => {
  const at = (text: string): number => new Date(text).getTime();
  const now = at("2026-06-15T12:00");
  assert.doesNotMatch(absolute(at("2026-06-15T10:30"), now), /15|2026/);
  assert.match(absolute(at("2026-06-14T10:30"), now), /14/);
  assert.doesNotMatch(absolute(at("2026-06-14T10:30"), now), /2026/);
  assert.match(absolute(at("2025-06-14T10:30"), now), /2025/);
});
