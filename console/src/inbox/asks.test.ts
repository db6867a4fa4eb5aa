import assert from "node:assert/strict";
import { test } from "node:test";
import { get, send } from "../api/client.ts";
import type { Ask } from "../api/types.ts";
import { writeJson } from "../lib/json.ts";
import { fromJson } from "../schema/typed.ts";
import { approvalOf, byUrgency, change, whose } from "./asks.ts";

function ask(askId: string, edit: Partial<Ask> = {}): Ask {
  return {
    askId,
    kind: "step",
    state: "open",
    revision: 0,
    reason: "",
    of: { workflowId: "w", executionId: "e", stepId: "s", path: "s" },
    to: [],
    claimedBy: null,
    claimedUntil: null,
    userId: null,
    openedAt: "2026-01-01T00:00:00Z",
    deadline: null,
    closedAt: null,
    ...edit,
  };
}

test("the nearest deadline is first, and what has none comes last, oldest first", () => {
  const asks = [ask("new", { openedAt: "2026-01-02T00:00:00Z" }), ask("old"), ask("late", { deadline: "2026-03-01T00:00:00Z" }), ask("soon", { deadline: "2026-02-01T00:00:00Z" })];
  assert.deepEqual(byUrgency(asks).map((each) => each.askId), ["soon", "late", "old", "new"]);
});

test("an approval as changed has the digits of numbers that were not changed", async () => {
  const bodies: unknown[] = [];
  globalThis.fetch = async (_, init) => {
    if (init?.body) bodies.push(init.body);
    return new Response('{"success":true,"data":{"payload":{"account":9007199254740993,"amount":5}}}');
  };
  const { payload } = await get("/inbox/{askId}", { path: { askId: "a" } });
  const changed = fromJson(writeJson(payload, 2).replace(": 5", ": 6"));
  for (const answer of [approvalOf(true, "", changed), approvalOf(true, " fine ", undefined), approvalOf(false, "", changed)]) {
    await send("POST", "/inbox/a/answer", { body: { data: answer } });
  }
  assert.deepEqual(bodies, ['{"data":{"approved":true,"input":{"account":9007199254740993,"amount":6}}}', '{"data":{"approved":true,"reason":"fine"}}', '{"data":{"approved":false}}']);
});

test("an answered ask leaves the list, and news that are older than its end do not bring it back", () => {
  const [asks, closed] = [new Map([["a", ask("a")]]), new Map()];
  change(asks, closed, ask("a", { state: "answered" }));
  assert.deepEqual([asks.size, closed.size], [0, 1]);
  change(asks, closed, ask("a", { revision: 1 }));
  assert.equal(asks.size, 0);
});

test("an older revision changes nothing", () => {
  const asks = new Map([["a", ask("a", { revision: 2, claimedBy: "lea" })]]);
  change(asks, new Map(), ask("a", { revision: 1 }));
  assert.equal(asks.get("a")?.claimedBy, "lea");
});

test("mine are those that name me or that I have claimed", () => {
  const asks = [ask("all"), ask("me", { to: ["user:lea"] }), ask("role", { to: ["role:editor"] }), ask("claimed", { claimedBy: "lea" })];
  assert.deepEqual(whose(asks, "mine", "lea").map((each) => each.askId), ["me", "claimed"]);
  assert.deepEqual(whose(asks, "roles", "lea").map((each) => each.askId), ["role"]);
});
