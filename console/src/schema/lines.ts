import { writeJson } from "../lib/json.ts";
import { plural } from "../lib/text.ts";
import { isNullable, resolve, type Schema, shapeOf, typeOf, variantName } from "./schema.ts";

/** One value of a schema, as a line of a table. */
export interface Line {
  path: string;
  type: string;
  required: boolean;
  rules: string;
  description: string;
}

/** Schemas that contain themselves have no end. */
const depthMax = 5;

/** The values of a schema: those of objects, of the items of lists, and of each of several forms. */
export function linesOf(given: Schema, root: Schema, prefix = "", depth = 0): Line[] {
  const shape = shapeOf(given, root);
  if (depth >= depthMax) return [];
  if (shape.is === "array") return linesOf(shape.items, root, `${prefix}[]`, depth);
  if (shape.is === "variants") {
    return shape.variants.flatMap((variant, index) => {
      const only = `only in ${variantName(variant, root, index)}`;
      return linesOf(variant, root, prefix, depth + 1).map((line) => ({ ...line, rules: [only, line.rules].filter(Boolean).join("; ") }));
    });
  }
  if (shape.is !== "object") return [];
  return shape.fields.flatMap(({ name, schema, required }) => {
    const declared = resolve(schema, root);
    const path = prefix ? `${prefix}.${name}` : name;
    const description = [declared.title, declared.description].filter(Boolean).join(": ");
    const line: Line = { path, type: typeName(schema, root), required, rules: rulesOf(declared, root), description };
    return [line, ...linesOf(schema, root, path, depth + 1)];
  });
}

function typeName(schema: Schema, root: Schema): string {
  const declared = resolve(schema, root);
  const name = [plainName(declared, root), declared.format].filter(Boolean).join(", ");
  return isNullable(schema, root) && name !== "null" ? `${name} or null` : name;
}

function plainName(schema: Schema, root: Schema): string {
  const shape = shapeOf(schema, root);
  if (shape.is === "choice") return "one of";
  if (shape.is === "variants") return `one of ${shape.variants.length} forms`;
  if (shape.is === "array") return `list of ${plainName(resolve(shape.items, root), root)}`;
  return typeOf(schema) ?? "anything";
}

function rulesOf(schema: Schema, root: Schema): string {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, minLength, maxLength, minItems, maxItems, pattern } = schema;
  const shape = shapeOf(schema, root);
  const items = shape.is === "array" ? rulesOf(resolve(shape.items, root), root) : "";
  return [
    shape.is === "choice" && shape.options.map(({ text }) => text).join(", "),
    minimum !== undefined && `at least ${minimum}`,
    maximum !== undefined && `at most ${maximum}`,
    exclusiveMinimum !== undefined && `more than ${exclusiveMinimum}`,
    exclusiveMaximum !== undefined && `less than ${exclusiveMaximum}`,
    minLength !== undefined && `at least ${plural(minLength, "letter")}`,
    maxLength !== undefined && `at most ${plural(maxLength, "letter")}`,
    minItems !== undefined && `at least ${plural(minItems, "item")}`,
    maxItems !== undefined && `at most ${plural(maxItems, "item")}`,
    pattern !== undefined && `matches ${pattern}`,
    schema.default !== undefined && `default ${writeJson(schema.default)}`,
    items && `each: ${items}`,
  ]
    .filter(Boolean)
    .join("; ");
}
