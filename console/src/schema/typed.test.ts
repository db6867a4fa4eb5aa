import assert from "node:assert/strict";
import { test } from "node:test";
import { Long } from "../lib/json.ts";
import { asNumber, Broken, fromInput, fromJson, hasBroken, toInput } from "./typed.ts";
import { validate } from "./validate.ts";

test("a number is what was typed, or stays a text", () => {
  const rows: [string, number | string][] = [
    ["900", 900],
    ["900.05", 900.05],
    ["0,05", 0.05],
    ["-0.5", -0.5],
    ["-0", -0],
    ["900.0", 900],
    ["1e3", 1000],
    [" 7 ", 7],
    ["900.", "900."],
    ["-", "-"],
    ["", ""],
    ["twelve", "twelve"],
    ["1,500", "1,500"],
    ["1,234,567", "1,234,567"],
    ["0,125", 0.125],
    ["1e400", "1e400"],
    ["9007199254740991", 9007199254740991],
    ["18446744073709551616", "18446744073709551616"],
  ];
  for (const [typed, value] of rows) assert.ok(Object.is(asNumber(typed), value), typed);
  for (const typed of ["9007199254740993", "+9007199254740993"]) assert.deepEqual(asNumber(typed), new Long("9007199254740993"));
});

test("times are those of this browser, with its offset", () => {
  assert.match(fromInput("10:30", "time"), /^10:30:00(Z|[+-]\d\d:\d\d)$/);
  assert.match(fromInput("10:30:15", "time"), /^10:30:15(Z|[+-]\d\d:\d\d)$/);
  for (const typed of ["10:30", "00:00", "23:59:59"]) assert.equal(toInput(fromInput(typed, "time"), "time"), typed);
  for (const typed of ["2026-07-01T10:30", "2026-01-01T00:00", "2026-01-01T10:30:15", "0099-01-01T10:00"]) assert.equal(toInput(fromInput(typed, "date-time"), "date-time"), typed);
  assert.equal(fromInput("2026-07-01T10:30", "date-time"), new Date("2026-07-01T10:30").toISOString());
});

test("what is no time is not lost", () => {
  for (const format of ["time", "date-time"]) {
    for (const typed of ["", "soon", "99999-01-01T10:00"]) {
      assert.equal(fromInput(typed, format), typed);
      assert.equal(toInput(typed, format), typed);
    }
  }
  assert.equal(toInput("2026-01-01", "date"), "2026-01-01");
  assert.equal(fromInput("a", undefined), "a");
});

test("a whole number of JSON is kept, or refused as one of a field is", () => {
  assert.deepEqual(fromJson("9007199254740993"), new Long("9007199254740993"));
  const rounded = fromJson('{"a":[18446744073709551616]}');
  assert.ok(rounded instanceof Broken);
  assert.match(rounded.why, /^has 18446744073709551616, which would be rounded/);
});

test("what is no JSON fits nothing, wherever it is", () => {
  const broken = fromJson('{"a":');
  assert.ok(broken instanceof Broken);
  assert.equal(JSON.stringify({ broken }), '{"broken":"{\\"a\\":"}');
  assert.deepEqual([fromJson(" "), fromJson("[1]")], [undefined, [1]]);
  assert.deepEqual([hasBroken({ a: [1, { b: broken }] }), hasBroken({ a: [1, null] })], [true, false]);
  const schema = { type: "object", properties: { any: {}, list: { type: "array", items: {} } } };
  assert.deepEqual(validate(schema, { any: broken, list: [1, broken] }).map(({ path }) => path), ["any", "list[1]"]);
  assert.equal(validate(undefined, broken).length, 1);
});

test("a number that a browser has written is none that was rounded", () => {
  assert.deepEqual(fromJson("[100000000000000000000]"), [1e20]);
  assert.ok(fromJson("[18446744073709551616]") instanceof Broken);
});
