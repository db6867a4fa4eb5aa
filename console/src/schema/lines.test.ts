import assert from "node:assert/strict";
import { test } from "node:test";
import { linesOf } from "./lines.ts";
import { defaults, type Schema } from "./schema.ts";
import { validate, variantOf } from "./validate.ts";

const schema: Schema = {
  type: "object",
  required: ["payment", "kinds", "boss"],
  properties: {
    payment: {
      title: "Payment",
      oneOf: [
        { title: "Card", type: "object", required: ["by", "number"], properties: { by: { const: "card" }, number: { type: "string" } } },
        { title: "Account", type: "object", required: ["by", "iban"], properties: { by: { const: "account" }, iban: { type: "string", minLength: 4 } } },
      ],
    },
    kinds: { type: "array", minItems: 1, items: { enum: ["food", "travel"] } },
    boss: { anyOf: [{ $ref: "#/$defs/person" }, { type: "null" }] },
    deputy: { description: "Who else", anyOf: [{ $ref: "#/$defs/person" }, { type: "null" }] },
    tree: { $ref: "#/$defs/tree" },
  },
  $defs: {
    person: { type: "object", required: ["name"], properties: { name: { type: "string" } } },
    tree: { type: "object", properties: { children: { type: "array", items: { $ref: "#/$defs/tree" } } } },
  },
};

test("a table has the values of lists, of each form, and of what may be null", () => {
  const lines = linesOf(schema, schema).map(({ path, type, required, rules, description }) => [path, type, required ? "yes" : "no", rules, description].join(" | "));
  assert.deepEqual(lines.slice(0, 10), [
    "payment | one of 2 forms | yes |  | Payment",
    "payment.by | one of | yes | only in Card; card | ",
    "payment.number | string | yes | only in Card | ",
    "payment.by | one of | yes | only in Account; account | ",
    "payment.iban | string | yes | only in Account; at least 4 letters | ",
    "kinds | list of one of | yes | at least 1 item; each: food, travel | ",
    "boss | object or null | yes |  | ",
    "boss.name | string | yes |  | ",
    "deputy | object or null | no |  | Who else",
    "deputy.name | string | yes |  | ",
  ]);
  assert.ok(lines.length < 20, "a schema that contains itself ends");
});

test("a form begins with what is certain", () => {
  const value = defaults(schema, schema);
  assert.deepEqual(value, { payment: { by: "card" }, kinds: [], boss: {} });
});

test("the form of a value is the one that it fits", () => {
  const variants = schema.properties?.payment?.oneOf ?? [];
  assert.equal(variantOf(variants, { by: "account", iban: "IT60" }, schema), 1);
  assert.equal(variantOf(variants, { by: "account" }, schema), 1, "the one with the fewest faults");
  assert.equal(variantOf(variants, undefined, schema), 0);
});

test("null is a value where it may be", () => {
  const known = { payment: { by: "card", number: "1" }, kinds: ["food"] };
  assert.deepEqual(validate(schema, { ...known, boss: null }), []);
  assert.deepEqual(
    validate(schema, { ...known, boss: {} }).map(({ path }) => path),
    ["boss.name"],
  );
});
