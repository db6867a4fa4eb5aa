import assert from "node:assert/strict";
import { test } from "node:test";
import { parseJson } from "../lib/json.ts";
import { choicesOf, chosenAfter, defaults, initial, shapeOf, type Schema } from "./schema.ts";
import { faultOf, validate } from "./validate.ts";

const order: Schema = {
  type: "object",
  required: ["id", "lines"],
  additionalProperties: false,
  properties: {
    id: { type: "string", minLength: 1, pattern: "^[A-Z]" },
    speed: { enum: ["slow", "fast"] },
    lines: { type: "array", minItems: 1, items: { $ref: "#/$defs/line" } },
  },
  $defs: { line: { type: "object", required: ["amount"], properties: { amount: { type: "number", minimum: 0 } } } },
};

test("a value that fits has no faults", () => {
  assert.deepEqual(validate(order, { id: "A-1", lines: [{ amount: 2 }] }), []);
});

test("each fault names its place", () => {
  const faults = validate(order, { id: "", speed: "now", lines: [{ amount: -1 }, {}], more: 1 });
  assert.deepEqual(
    faults.map((fault) => fault.path),
    ["id", "speed", "lines[0].amount", "lines[1].amount", "more"],
  );
});

test("a whole number is told from a number, and null from a missing value", () => {
  assert.equal(validate({ type: "integer" }, 1.5)[0]?.message, "must be a whole number");
  assert.deepEqual(validate({ type: ["string", "null"] }, null), []);
});

test("choices accept what fits one of them", () => {
  const schema: Schema = { oneOf: [{ type: "string" }, { type: "object", required: ["a"] }] };
  assert.deepEqual(validate(schema, { a: 1 }), []);
  assert.equal(validate(schema, 7)[0]?.message, "fits none of the choices");
});

test("a pattern that this browser cannot read passes", () => {
  assert.deepEqual(validate({ type: "string", pattern: "(?<" }, "x"), []);
});

test("the place of a refusal is found", () => {
  const text = 'Resume data validation failed: approved: "yes" is not of type "boolean"';
  assert.deepEqual(faultOf(text), { path: "approved", message: '"yes" is not of type "boolean"' });
  assert.equal(faultOf("Workflow not found"), null);
});

test("a schema has the shape of its form", () => {
  const shapes: [Schema, string][] = [
    [{ type: "string" }, "string"],
    [{ type: ["integer", "null"] }, "integer"],
    [{ type: ["integer", "string"] }, "json"],
    [{ enum: [1, 2] }, "choice"],
    [{ oneOf: [{ const: "a" }, { const: "b" }] }, "choice"],
    [{ oneOf: [{ type: "null" }, { type: "string" }] }, "string"],
    [{ oneOf: [{ type: "object" }, { type: "string" }] }, "variants"],
    [{ type: "object" }, "json"],
    [{ type: "object", properties: { a: { type: "string" } } }, "object"],
    [{ type: "array", items: { type: "string" } }, "array"],
    [{ type: "array" }, "json"],
    [{}, "json"],
  ];
  for (const [schema, is] of shapes) assert.equal(shapeOf(schema, schema).is, is, JSON.stringify(schema));
});

test("a form begins with the example, else with the defaults", () => {
  const schema: Schema = { type: "object", properties: { n: { type: "integer", default: 3 }, t: { type: "string" } } };
  assert.deepEqual(initial(schema), { n: 3 });
  assert.deepEqual(defaults({ type: "object", properties: { who: { type: "object", properties: { a: {} } } } }, {}), {});
  assert.deepEqual(initial({ ...schema, examples: [{ t: "x" }] }), { t: "x" });
  const endless: Schema = { type: "object", properties: { self: { $ref: "#" } } };
  assert.equal(typeof defaults(endless, endless), "object");
});

test("a list of some of several values has a box for each", () => {
  const plain: Schema = { type: "array", items: { type: "string", enum: ["red", "green", "blue"] } };
  const titled: Schema = { type: "array", minItems: 1, items: { anyOf: [{ const: 1, title: "One" }, { const: 2, title: "Two" }] } };
  const root: Schema = { type: "object", required: ["sizes"], properties: { colours: plain, sizes: titled } };
  assert.deepEqual(choicesOf(titled.items ?? {}, root, undefined), [{ value: 1, text: "One" }, { value: 2, text: "Two" }]);
  const colours = choicesOf(plain.items ?? {}, root, ["blue"]) ?? [];
  assert.deepEqual(colours.map(({ text }) => text), ["red", "green", "blue"]);
  for (const [value, index, on, expected] of [
    [undefined, 1, true, ["green"]],
    [["blue"], 0, true, ["red", "blue"]],
    [["red", "blue"], 0, false, ["blue"]],
    [["red"], 0, true, ["red"]],
    [["red"], 0, false, []],
  ] as const) {
    assert.deepEqual(chosenAfter(colours, value, colours[index] ?? { value: "", text: "" }, on), expected);
  }
  assert.equal(choicesOf({ type: "string" }, root, []), null);
  for (const value of [["red", "red"], ["black"]]) assert.equal(choicesOf(plain.items ?? {}, root, value), null, "what boxes cannot show is a list");
  assert.deepEqual(initial(root), { sizes: [] });
  assert.deepEqual(initial({ type: "object", properties: { more: root } }), {}, "what is optional is left out");
  assert.deepEqual(validate(root, { sizes: [] }), [{ path: "sizes", message: "needs at least 1" }]);
});

test("a long number is a whole number, within its bounds", () => {
  const value = parseJson("9007199254740993");
  for (const type of ["integer", "number", ["integer", "null"]]) assert.deepEqual(validate({ type }, value), []);
  for (const type of ["object", "string", "array"]) assert.equal(validate({ type }, value).length, 1, type);
  assert.equal(validate({ maximum: 10 }, value).length, 1);
  assert.deepEqual(validate(parseJson('{"maximum":9007199254740993,"enum":[9007199254740993]}'), value), []);
  assert.deepEqual(validate(parseJson('{"exclusiveMaximum":9007199254740993}'), value), [{ path: "", message: "must be less than 9007199254740993" }]);
  assert.deepEqual(validate(parseJson('{"const":9007199254740992}'), value), [{ path: "", message: "must be 9007199254740992" }]);
  assert.deepEqual(initial(parseJson('{"default":{"n":9007199254740993}}') as Schema), { n: value });
});
