import assert from "node:assert/strict";
import { test } from "node:test";
import { empty } from "./fold.ts";
import { countsOf, sentenceOf } from "./operation.ts";

const startAt = "2026-01-02T10:00:00Z";

test("an operation is a sentence", () => {
  const workflows = [{ id: "flaky", name: "Booking" }];
  const to = Date.parse(startAt) - 3;
  assert.equal(sentenceOf({ action: "replay", filter: { workflowId: "flaky", status: "error", to } }, startAt, workflows), "Replays executions that are failed, are of Booking.");
  assert.match(sentenceOf({ action: "cancel", filter: { from: to - 3_600_000, endedTo: to } }, startAt, workflows), /^Cancels executions that started after .+, ended before .+\.$/);
  assert.equal(sentenceOf({ action: "cancel", filter: { via: "openai" } }, startAt, workflows), "Cancels executions that were started through openai.");
  assert.equal(sentenceOf({ action: "suspend", filter: { to } }, startAt, workflows), "Suspends all executions that it can.");
  assert.equal(sentenceOf({ action: "resume", executionIds: ["a"] }, startAt, workflows), "Resumes 1 execution that was named.");
});

test("its counts are those of its last page until it has a result", () => {
  const model = empty();
  const counts = (done: number) => ({ done, skipped: 0, failed: 0, failures: [] });
  assert.equal(countsOf(model), undefined);
  for (const [round, output] of [counts(200), counts(400), undefined].entries()) {
    const path = `all[${round}]/page`;
    model.steps.set(path, { path, id: "page", kind: "completed", from: startAt, until: null, attempts: [], waits: [], first: 1, last: 1, output });
  }
  assert.equal(countsOf(model)?.done, 400);
  model.result = counts(450);
  assert.equal(countsOf(model)?.done, 450);
});
