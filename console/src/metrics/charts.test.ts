import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { charts, queryOf } from "./charts.ts";

const documented = readFileSync(new URL("../../../docs/metrics.md", import.meta.url), "utf8");

test("each chart asks for metrics that the server documents, and none for a former name", () => {
  for (const { title, series } of charts) {
    for (const { metric } of series) {
      const line = documented.split("\n").find((each) => each.startsWith(`| \`${metric.replace(/_count$/, "")}\` |`));
      assert.ok(line, `${title}: ${metric}`);
      assert.doesNotMatch(line, /Former name/, `${title}: ${metric}`);
    }
  }
});

test("a line is drawn from what its query says", () => {
  const queries = charts.flatMap((chart) => chart.series.map(queryOf));
  assert.ok(queries.includes('sum(rate(http_requests_total{status=~"5.."}[1m]))'));
  assert.ok(queries.includes("histogram_quantile(0.95, sum by (le) (rate(greenroom_step_duration_seconds_bucket[1m])))"));
  assert.equal(new Set(queries).size, queries.length);
});
