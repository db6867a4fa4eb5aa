import assert from "node:assert/strict";
import { test } from "node:test";
import { firstLine, middle } from "./text.ts";

test("a first line is cut by letters, and says that more follows", () => {
  const rows: [string, number, string][] = [
    ["short", 5, "short"],
    ["short", 4, "shor…"],
    ["one\r\ntwo", 9, "one…"],
    ["😀😀😀", 3, "😀😀😀"],
    ["😀😀😀😀", 3, "😀😀😀…"],
    ["x".repeat(50_000_000), 3, "xxx…"],
    ["", 3, ""],
  ];
  for (const [text, max, expected] of rows) assert.equal(firstLine(text, max), expected);
});

test("the middle of a long text is left out", () => {
  const rows: [string, number, string][] = [
    ["abcdef", 6, "abcdef"],
    ["abcdef", 5, "ab…ef"],
    ["😀😀😀😀😀", 5, "😀😀😀😀😀"],
    ["😀😀😀😀😀😀", 5, "😀😀…😀😀"],
    [`ab${"x".repeat(50_000_000)}yz`, 5, "ab…yz"],
  ];
  for (const [text, max, expected] of rows) assert.equal(middle(text, max), expected);
});
