import assert from "node:assert/strict";
import { test } from "node:test";
import { countOf, filterOf, isEmpty, isWholeHash, queryOf, wordsOf } from "./filter.ts";

test("the address is the filter", () => {
  const filter = filterOf(new URLSearchParams("status=error&range=24h&user=ada"));
  assert.deepEqual(queryOf(filter, Date.parse("2026-01-02T00:00:00Z")), { status: "error", userId: "ada", endedFrom: "2026-01-01T00:00:00.000Z" });
});

test("texts that are looked for are sent under the names of the API", () => {
  const filter = filterOf(new URLSearchParams("id=01a2&error=card+declined&parent=p-1&replayOf=r-1&via=mcp:desk"));
  assert.deepEqual(queryOf(filter, 0), { idPrefix: "01a2", error: "card declined", parentExecutionId: "p-1", replayOf: "r-1", via: "mcp:desk" });
  assert.match(wordsOf(filter), /, were started through mcp:desk$/);
});

test("what the API does not know is not sent", () => {
  assert.deepEqual(queryOf(filterOf(new URLSearchParams("status=odd&range=never")), 0), {});
  assert.ok(isEmpty(filterOf(new URLSearchParams("at=7"))));
});

test("a range has two times of the clock on the wall, or one", () => {
  const query = (text: string) => queryOf(filterOf(new URLSearchParams(text)), 0);
  const at = new Date("2026-01-02T10:00").toISOString();
  assert.deepEqual(query("range=between&from=2026-01-02T10:00"), { from: at });
  assert.deepEqual(query("range=between&status=error&to=2026-01-02T10:00"), { status: "error", endedTo: at });
  assert.deepEqual(query(`range=between&from=${at}`), { from: at });
  assert.deepEqual(query("range=between&from=nonsense"), {});
  assert.deepEqual(query("from=2026-01-02T10:00"), {}, "without the range it is not shown either");
});

test("two times are one condition, and a long hash is short in words", () => {
  const filter = filterOf(new URLSearchParams(`range=between&from=2026-01-02T10:00&to=2026-01-03T10:00&version=${"ab".repeat(32)}`));
  assert.equal(countOf(filter), 2);
  assert.ok(isWholeHash(filter.version));
  assert.ok(!isWholeHash("abab"));
  assert.match(wordsOf(filter), /^began with version abababab…abababab, started after 2026-01-02 10:00, started before 2026-01-03 10:00$/);
  assert.equal(wordsOf(filterOf(new URLSearchParams({ range: "between", from: new Date("2026-01-02T10:00").toISOString() }))), "started after 2026-01-02 10:00");
});
