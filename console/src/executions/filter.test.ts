import assert from "node:assert/strict";
import { test } from "node:test";
import { filterOf, isEmpty, queryOf } from "./filter.ts";

test("the address is the filter", () => {
  const filter = filterOf(new URLSearchParams("status=error&range=24h&user=ada"));
  assert.deepEqual(queryOf(filter, Date.parse("2026-01-02T00:00:00Z")), { status: "error", userId: "ada", endedFrom: "2026-01-01T00:00:00.000Z" });
});

test("what the API does not know is not sent", () => {
  assert.deepEqual(queryOf(filterOf(new URLSearchParams("status=odd&range=never")), 0), {});
  assert.ok(isEmpty(filterOf(new URLSearchParams("at=7"))));
});
