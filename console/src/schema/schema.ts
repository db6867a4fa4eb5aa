import { copyOf, hasParts, writeJson } from "../lib/json.ts";

/** A JSON Schema, as far as forms look at it. */
export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  definitions?: Record<string, Schema>;
  type?: string | string[];
  title?: string;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  items?: Schema;
  enum?: unknown[];
  const?: unknown;
  oneOf?: Schema[];
  anyOf?: Schema[];
  allOf?: Schema[];
  format?: string;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  default?: unknown;
  examples?: unknown[];
  /** A page that is opened before the answer. */
  openPage?: { url?: unknown; serverHost?: unknown } | null;
}

/** A value to choose, and what it is called. */
export interface Option {
  value: unknown;
  text: string;
}

/** Shape of a value in a form. */
export type Shape =
  | { is: "choice"; options: Option[] }
  | { is: "boolean" | "number" | "integer" | "string" | "json" }
  | { is: "object"; fields: Field[] }
  | { is: "array"; items: Schema }
  | { is: "variants"; variants: Schema[] };

export interface Field {
  name: string;
  schema: Schema;
  required: boolean;
}

export function asSchema(value: unknown): Schema | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Schema) : null;
}

/** The schema of a value that is there: references are followed, and "this or null" is this. */
export function resolve(schema: Schema, root: Schema): Schema {
  const found = follow(schema, root);
  const variants = found.oneOf ?? found.anyOf;
  const given = variants?.filter((variant) => follow(variant, root).type !== "null");
  if (!given?.[0] || given.length !== 1 || given.length === variants?.length || found.properties) return found;
  const { oneOf: _, anyOf: __, ...rest } = found;
  return { ...resolve(given[0], root), ...rest };
}

/** Returns true if null is a value of the schema. */
export function isNullable(schema: Schema, root: Schema): boolean {
  const { type, oneOf, anyOf } = follow(schema, root);
  return type === "null" || (Array.isArray(type) && type.includes("null")) || ((oneOf ?? anyOf)?.some((variant) => isNullable(variant, root)) ?? false);
}

/** Follows references within the document; others stay as they are. */
export function follow(schema: Schema, root: Schema): Schema {
  let current = schema;
  for (let hops = 0; current.$ref && hops < 10; hops++) {
    const found = lookUp(current.$ref, root);
    if (!found) return current;
    current = found;
  }
  return current;
}

function lookUp(ref: string, root: Schema): Schema | null {
  if (!ref.startsWith("#/")) return null;
  let at: unknown = root;
  for (const part of ref.slice(2).split("/")) {
    const key = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    at = asSchema(at) ? (at as Record<string, unknown>)[key] : undefined;
  }
  return asSchema(at);
}

/** The first type that is not null: an optional value is left out instead. */
export function typeOf(schema: Schema): string | undefined {
  const types = Array.isArray(schema.type) ? schema.type.filter((type) => type !== "null") : schema.type ? [schema.type] : [];
  if (types.length > 1) return undefined;
  return types[0] ?? (schema.properties ? "object" : undefined);
}

export function shapeOf(given: Schema, root: Schema): Shape {
  const schema = resolve(given, root);
  if (schema.enum) return { is: "choice", options: schema.enum.map((value) => optionOf(value)) };
  if (schema.const !== undefined) return { is: "choice", options: [optionOf(schema.const, schema.title)] };
  const variants = (schema.oneOf ?? schema.anyOf)?.filter((variant) => resolve(variant, root).type !== "null");
  if (variants && !schema.properties) {
    if (variants.every((variant) => variant.const !== undefined)) return { is: "choice", options: variants.map((variant) => optionOf(variant.const, variant.title)) };
    return { is: "variants", variants };
  }
  if (schema.allOf || variants) return { is: "json" };
  switch (typeOf(schema)) {
    case "boolean":
    case "number":
    case "integer":
    case "string":
      return { is: typeOf(schema) as "boolean" };
    case "array":
      return schema.items && asSchema(schema.items) ? { is: "array", items: schema.items } : { is: "json" };
    case "object": {
      const fields = fieldsOf(schema);
      return fields.length > 0 ? { is: "object", fields } : { is: "json" };
    }
    default:
      return { is: "json" };
  }
}

/** The values of which a list has some, each once; null if the list is another one, or has a value that no box shows. */
export function choicesOf(items: Schema, root: Schema, value: unknown): Option[] | null {
  const shape = shapeOf(items, root);
  if (shape.is !== "choice") return null;
  const known = shape.options.map((option) => JSON.stringify(option.value));
  const given = (Array.isArray(value) ? value : []).map((item: unknown) => JSON.stringify(item));
  const isShown = given.every((item) => known.includes(item)) && new Set(given).size === given.length;
  return isShown ? shape.options : null;
}

/** The chosen values after one was ticked or not, in the order in which they are offered. */
export function chosenAfter(options: readonly Option[], value: unknown, option: Option, on: boolean): unknown[] {
  const chosen = new Set((Array.isArray(value) ? value : []).map((item: unknown) => JSON.stringify(item)));
  if (on) chosen.add(JSON.stringify(option.value));
  else chosen.delete(JSON.stringify(option.value));
  return options.filter((each) => chosen.has(JSON.stringify(each.value))).map((each) => each.value);
}

/** Returns the name of one of several forms. */
export function variantName(variant: Schema, root: Schema, index: number): string {
  const { title, description, type } = resolve(variant, root);
  return title ?? description ?? (typeof type === "string" && type !== "object" ? type : `Form ${index + 1}`);
}

function optionOf(value: unknown, title?: string): Option {
  return { value, text: title ?? (typeof value === "string" ? value : writeJson(value)) };
}

export function fieldsOf(schema: Schema): Field[] {
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {}).map(([name, property]) => ({
    name,
    schema: asSchema(property) ?? {},
    required: required.has(name),
  }));
}

/** Returns the value with which a form begins: the first example, else the defaults. */
export function initial(schema: Schema, root: Schema = schema): unknown {
  const resolved = resolve(schema, root);
  if (resolved.examples && resolved.examples.length > 0) return copyOf(resolved.examples[0]);
  return defaults(resolved, root, 0);
}

/** Returns true if nothing is known of an object or a list: boxes of which none is ticked are as little as no fields. */
function isEmpty(value: unknown): boolean {
  const isNoItem = (each: unknown): boolean => Array.isArray(each) && each.length === 0;
  return isNoItem(value) || (hasParts(value) && !Array.isArray(value) && Object.values(value).every(isNoItem));
}

export function defaults(given: Schema, root: Schema, depth = 0): unknown {
  const schema = resolve(given, root);
  if (schema.default !== undefined) return copyOf(schema.default);
  if (schema.const !== undefined) return schema.const;
  const shape = depth > 4 ? undefined : shapeOf(schema, root);
  if (shape?.is === "variants") return shape.variants[0] && defaults(shape.variants[0], root, depth + 1);
  // No box is ticked at first.
  if (shape?.is === "array" && choicesOf(shape.items, root, [])) return [];
  if (shape?.is !== "object") return undefined;
  const value: Record<string, unknown> = {};
  for (const field of shape.fields) {
    const inner = defaults(field.schema, root, depth + 1) ?? (field.required && isNullable(field.schema, root) ? null : undefined);
    // An optional object of which nothing is known is left out, and so is a choice that nobody has made.
    const isKnown = !isEmpty(inner) && shapeOf(field.schema, root).is !== "variants";
    if (inner !== undefined && (field.required || isKnown)) value[field.name] = inner;
  }
  return value;
}
