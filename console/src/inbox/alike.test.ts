import assert from "node:assert/strict";
import { test } from "node:test";
import type { Ask, Suspension } from "../api/types.ts";
import { parseJson } from "../lib/json.ts";
import { aboutOf, alike, firstFields } from "./alike.ts";

const ask = (askId: string, reason: string, executionId: string): Ask => ({ askId, reason, of: { workflowId: "w", executionId, stepId: "s", path: "s" } }) as Ask;

test("questions with the words of another one are alike", () => {
  assert.deepEqual([...alike([ask("1", "a", "x"), ask("2", "b", "y"), ask("3", "a", "z")])], ["1", "3"]);
});

test("a long number is a plain field", () => {
  assert.equal(firstFields(parseJson('{"account":9007199254740993,"of":{}}')), "account 9007199254740993");
});

test("the first plain fields say what a question is about", () => {
  assert.equal(firstFields({ lines: [1], order: "A-1", note: "", amount: 900, ok: true, more: 1 }), "order A-1, amount 900, ok true");
  assert.equal(firstFields("only this"), "only this");
  assert.equal(firstFields(undefined), "");
  const suspension = { path: "s", payload: { n: 1 } } as unknown as Suspension;
  assert.equal(aboutOf(ask("1", "a", "x"), [{ executionId: "x", suspension }]), "n 1");
  assert.equal(aboutOf(ask("1", "a", "y"), [{ executionId: "x", suspension }]), "");
});
