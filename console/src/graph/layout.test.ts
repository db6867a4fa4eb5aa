import assert from "node:assert/strict";
import { test } from "node:test";
import type { WorkflowStep } from "../api/types.ts";
import { count, keyOf, lanesOf, nodesOf } from "./definition.ts";
import { type Drawing, layout } from "./layout.ts";

function step(id: string, type: WorkflowStep["type"] = "andThen", steps?: WorkflowStep[]): WorkflowStep {
  return { id, name: id, type, purpose: "", ...(steps ? { steps } : {}) };
}

function inBlock(block: string, ...steps: WorkflowStep[]): WorkflowStep[] {
  return steps.map((each) => ({ ...each, block }));
}

const trip = [
  step("offers", "andAll", [...inBlock("f", step("flight")), ...inBlock("h", step("hotel"))]),
  step("carrier", "andRace", [...inBlock("rail", step("rail-answers", "andSleep"), step("rail")), ...inBlock("road", step("road"))]),
  step("each", "andForEach", inBlock("item", step("pay", "andWhen", inBlock("entry", step("book"))))),
];

/** A drawing as text: one line per step, indented by nothing, with its place. */
function picture({ width, height, placed, edges }: Drawing): string[] {
  return [`${width} x ${height}, ${edges.length} edges`, ...placed.map((each) => `${each.as} ${each.node.key} ${each.x},${each.y} ${each.width}x${each.height}`)];
}

test("a sequence runs downwards", () => {
  assert.deepEqual(picture(layout(nodesOf([step("a"), step("b")]))), ["152 x 108, 1 edges", "box a 0,0 152x44", "box b 0,64 152x44"]);
});

test("blocks stand side by side, and containers around what they hold", () => {
  assert.deepEqual(picture(layout(nodesOf(trip))), [
    "320 x 516, 13 edges",
    "bar offers 0,0 320x122",
    "box offers/flight 0,50 152x44",
    "box offers/hotel 168,50 152x44",
    "bar carrier 0,142 320x186",
    "box carrier/rail-answers 0,192 152x44",
    "box carrier/rail 0,256 152x44",
    "box carrier/road 168,192 152x44",
    "frame each 48,348 224x168",
    "frame each/pay 60,398 200x106",
    "box each/pay/book 84,448 152x44",
  ]);
});

test("no two boxes overlap", () => {
  const boxes = layout(nodesOf(trip)).placed.filter((each) => each.as === "box");
  for (const a of boxes) {
    for (const b of boxes) {
      if (a === b) continue;
      const apart = a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
      assert.ok(apart, `${a.node.key} overlaps ${b.node.key}`);
    }
  }
});

test("a folded container is one box that tells how much is in it", () => {
  const { placed } = layout(nodesOf(trip), new Set(["each"]));
  const each = placed.find((item) => item.node.key === "each");
  assert.deepEqual([each?.as, each?.inside, each?.height], ["folded", 2, 44]);
});

test("steps of one block share a lane", () => {
  const carrier = nodesOf(trip)[1];
  assert.deepEqual(carrier && lanesOf(carrier).map((lane) => [lane.name, lane.nodes.length]), [["rail", 2], ["road", 1]]);
});

test("paths lead to steps through rounds and blocks, also if a block has the name of a step", () => {
  const nodes = nodesOf(trip);
  assert.equal(keyOf(nodes, "carrier/rail/rail"), "carrier/rail");
  assert.equal(keyOf(nodes, "each[17]/pay/entry/book"), "each/pay/book");
  assert.equal(keyOf(nodes, "each"), "each");
  assert.equal(keyOf(nodes, "gone/x"), null);
});

test("five thousand steps are laid out in a moment", () => {
  const many = Array.from({ length: 500 }, (_, n) => step(`all-${n}`, "andAll", Array.from({ length: 9 }, (_, m) => step(`s-${n}-${m}`))));
  const nodes = nodesOf(many);
  assert.equal(count(nodes), 5000);
  assert.equal(layout(nodes).placed.length, 5000);
});
