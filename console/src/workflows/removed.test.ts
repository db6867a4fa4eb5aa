import assert from "node:assert/strict";
import { test } from "node:test";
import { removedOf } from "./removed.ts";

test("what has executions and is not registered was removed, except for operations of the server itself", () => {
  const none = { running: 0, suspended: 0, completed: 1, error: 0, cancelled: 0, all: 1 };
  const counts = ["a", "b", "greenroom.bulk"].map((workflowId) => ({ ...none, workflowId }));
  assert.deepEqual(removedOf(counts, [{ id: "b" }, { id: "c" }]).map(({ workflowId }) => workflowId), ["a"]);
  assert.deepEqual(removedOf([], [{ id: "b" }]), []);
});
