import { Long, wholeOf } from "../lib/json.ts";
import { asSchema, fieldsOf, initial, resolve, type Schema, shapeOf } from "../schema/schema.ts";
import { validate } from "../schema/validate.ts";

/** A value that fits the schema, for commands that work as they are; what is not required is left out. */
export function sample(given: unknown): unknown {
  const root = asSchema(given);
  if (!root) return {};
  const first = initial(root);
  return first !== undefined && validate(root, first).length === 0 ? first : made(root, root, 0);
}

const texts: Record<string, string> = {
  date: "2026-01-31",
  "date-time": "2026-01-31T12:00:00Z",
  time: "12:00:00Z",
  email: "ada@example.com",
  uri: "https://example.com",
  uuid: "00000000-0000-4000-8000-000000000000",
};

/** The next number; bounds of 64 bits are long ones. */
function above(bound: number | Long | undefined): number | Long | null | undefined {
  if (bound instanceof Long) return wholeOf(String(bound.valueOf() + 1n));
  return bound === undefined ? undefined : bound + 1;
}

function made(given: Schema, root: Schema, depth: number): unknown {
  const schema = resolve(given, root);
  const known = schema.examples?.[0] ?? schema.default;
  if (known !== undefined && validate(schema, known, root).length === 0) return known;
  // A schema that contains itself has no end.
  if (depth > 6) return null;
  const shape = shapeOf(schema, root);
  switch (shape.is) {
    case "choice":
      return shape.options[0]?.value;
    case "variants":
      return shape.variants[0] && made(shape.variants[0], root, depth + 1);
    case "boolean":
      return true;
    case "number":
    case "integer":
      return schema.minimum ?? above(schema.exclusiveMinimum) ?? Math.min(1, Number(schema.maximum ?? 1));
    case "string":
      return texts[schema.format ?? ""] ?? "text".padEnd(schema.minLength ?? 0, "x").slice(0, schema.maxLength);
    case "array":
      return Array.from({ length: schema.minItems ?? 0 }, () => made(shape.items, root, depth + 1));
    case "object": {
      const required = fieldsOf(schema).filter((field) => field.required);
      return Object.fromEntries(required.map((field) => [field.name, made(field.schema, root, depth + 1)]));
    }
    default:
      return {};
  }
}
