import assert from "node:assert/strict";
import { test } from "node:test";
import { parse, quantile, rate, sum } from "./exposition.ts";

const early = parse(
  `# HELP starts Started
# TYPE starts counter
starts_total{workflow="a"} 10
starts_total{workflow="b \\"quoted\\" \\\\ \\n"} 5
open 3
took_bucket{status="ok",le="0.1"} 0
took_bucket{status="ok",le="1"} 0
took_bucket{status="ok",le="+Inf"} 0
`,
  1000,
);
const late = parse(
  `starts_total{workflow="a"} 30
starts_total{workflow="b \\"quoted\\" \\\\ \\n"} 5
open 4
took_bucket{status="ok",le="0.1"} 50
took_bucket{status="ok",le="1"} 90
took_bucket{status="ok",le="+Inf"} 100
`,
  11_000,
);

test("samples are summed, and chosen by their labels", () => {
  assert.equal(sum(early, "starts_total"), 15);
  assert.equal(sum(early, "starts_total", { workflow: "a" }), 10);
  assert.equal(sum(early, "starts_total", { workflow: /b.*/s }), 5);
  assert.equal(sum(early, "starts_total", { workflow: /b/ }), 0, "patterns are of the whole value");
  assert.equal(early.samples.get("starts_total")?.[1]?.labels.workflow, 'b "quoted" \\ \n');
  assert.equal(sum(early, "nothing"), null);
});

test("counters grow per second, also when they begin anew", () => {
  assert.equal(rate(early, late, "starts_total"), 2);
  assert.equal(rate(late, { ...early, at: 21_000 }, "starts_total", { workflow: "a" }), 1);
  assert.equal(rate(early, late, "nothing"), null);
});

test("quantiles are those of what was observed in between", () => {
  assert.equal(quantile(early, late, "took", 0.5), 0.1);
  assert.equal(quantile(early, late, "took", 0.7)?.toFixed(2), "0.55");
  assert.equal(quantile(early, late, "took", 0.95), 1, "above the largest bound");
  assert.equal(quantile(late, late, "took", 0.5), null);
});
