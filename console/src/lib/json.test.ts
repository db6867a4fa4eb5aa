import assert from "node:assert/strict";
import { test } from "node:test";
import { copyOf, hasParts, Long, parseJson, writeJson } from "./json.ts";

const long = "9007199254740993";

test("whole numbers of 64 bits keep their digits, and others are numbers as ever", () => {
  const kept = [long, "-9007199254740993", "9007199254740992", "18446744073709551615", "-9223372036854775808", `{"a":[${long},1,{"b":-${long}}]}`];
  for (const text of kept) assert.equal(writeJson(parseJson(text)), text);
  assert.deepEqual(parseJson(`[1, ${long} ,9007199254740991,1e20,0.12345678901234567]`), [1, new Long(long), 9007199254740991, 1e20, 0.12345678901234567]);
  const rounded: string[] = [];
  assert.deepEqual(parseJson("[18446744073709551616,-9223372036854775809]", (digits) => rounded.push(digits)), [2 ** 64, -(2 ** 63)]);
  assert.deepEqual(rounded, ["18446744073709551616", "-9223372036854775809"]);
});

test("digits in texts and names are no numbers", () => {
  const value = { [long]: long, quoted: `"${long}"`, slash: `\\"${long}\\`, letters: `ü\n${long}, ${long}` };
  assert.deepEqual(parseJson(JSON.stringify(value)), value);
  assert.equal(writeJson({ ...value, n: new Long(long) }, 2), JSON.stringify({ ...value, n: 0 }, null, 2).replace('"n": 0', `"n": ${long}`));
});

test("a text of many megabytes is read, and what is wrong with one is said of its own letters", () => {
  const text = JSON.stringify(['a"\\'.repeat(3_000_000), "b".repeat(10_000_000)]);
  assert.equal(writeJson(parseJson(`[${text},${long}]`)), `[${text},${long}]`);
  const wrong = `[${long},x]`;
  const messageOf = (parse: (text: string) => unknown): string => {
    try {
      return String(parse(wrong));
    } catch (error) {
      return String(error);
    }
  };
  assert.equal(messageOf(parseJson), messageOf(JSON.parse));
});

test("a copy keeps long numbers, which have no parts and compare as numbers", () => {
  const value = parseJson(`{"a":${long}}`) as { a: Long };
  const copy = copyOf(value) as { a: Long };
  assert.ok(copy !== value && copy.a instanceof Long);
  assert.deepEqual([hasParts(value), hasParts([]), hasParts(copy.a), hasParts(null)], [true, true, false, false]);
  assert.ok(copy.a.valueOf() > 5 && `${copy.a}` === long);
});
