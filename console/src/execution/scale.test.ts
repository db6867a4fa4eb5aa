import assert from "node:assert/strict";
import { test } from "node:test";
import { scaleOf } from "./scale.ts";

test("without long gaps places are as far apart as times", () => {
  const { at, cuts } = scaleOf([0, 25, 50, 75, 100], true);
  assert.deepEqual([at(0), at(25), at(100), cuts.length], [0, 0.25, 1, 0]);
});

test("a long wait is cut, order stays, and the ends stay at the ends", () => {
  const times = [0, 10, 20, 100_000, 100_010];
  const { at, cuts } = scaleOf(times, true);
  assert.deepEqual(cuts, [{ from: 20, until: 100_000 }]);
  const places = times.map(at);
  assert.equal(places[0], 0);
  assert.ok(Math.abs((places[4] ?? 0) - 1) < 1e-9);
  assert.ok(Math.abs((places[3] ?? 0) - (places[2] ?? 0) - 0.1) < 1e-9);
  assert.deepEqual([...places].sort((a, b) => a - b), places);
});

test("seconds in which a step runs are not cut", () => {
  assert.deepEqual(scaleOf([0, 400, 401, 703], true).cuts, []);
});

test("a time in which something runs is never cut", () => {
  const times = [0, 10, 100_000, 100_010];
  assert.equal(scaleOf(times, true, [{ from: 10, until: 50_000 }]).cuts.length, 0);
  assert.equal(scaleOf(times, true, [{ from: 5, until: null }]).cuts.length, 0);
  assert.equal(scaleOf(times, true, [{ from: 0, until: 10 }, { from: 100_000, until: null }]).cuts.length, 1);
});

test("times outside stay at the edges, and one time is no axis", () => {
  const { at } = scaleOf([10, 20, 30], true);
  assert.deepEqual([at(0), at(99)], [0, 1]);
  assert.equal(scaleOf([], true).at(5), 1);
});
