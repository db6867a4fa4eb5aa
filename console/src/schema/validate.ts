import { hasParts, Long, writeJson } from "../lib/json.ts";
import { asSchema, follow, type Schema } from "./schema.ts";
import { Broken } from "./typed.ts";

/** A place in a value, as `lines[0].amount`, and what is wrong there. */
export interface Fault {
  path: string;
  message: string;
}

/**
 * The faults that can be told while somebody types. The server has the last word: what this does not know
 * (formats, conditions) passes.
 */
export function validate(given: unknown, value: unknown, root = asSchema(given), path = ""): Fault[] {
  const here = (message: string): Fault[] => [{ path, message }];
  if (value instanceof Broken) return here(value.why);
  const declared = asSchema(given);
  if (!declared || !root) return [];
  const schema = follow(declared, root);
  if (value === undefined) return here("is missing");
  if (schema.enum && !schema.enum.some((option) => isSame(option, value))) return here(`must be one of ${schema.enum.map(show).join(", ")}`);
  if (schema.const !== undefined && !isSame(schema.const, value)) return here(`must be ${show(schema.const)}`);
  const types = schema.type === undefined ? [] : Array.isArray(schema.type) ? schema.type : [schema.type];
  if (types.length > 0 && !types.some((type) => isOfType(value, type))) return here(`must be ${types.map(typeName).join(" or ")}`);
  const variants = schema.oneOf ?? schema.anyOf;
  const found: Fault[] = [];
  if (variants) found.push(...ofVariants(variants, value, root, path));
  for (const part of schema.allOf ?? []) found.push(...validate(part, value, root, path));
  if (typeof value === "string") found.push(...ofText(schema, value, path));
  if (typeof value === "number" || value instanceof Long) found.push(...ofNumber(schema, value.valueOf(), path));
  if (Array.isArray(value)) found.push(...ofItems(schema, value, root, path));
  else if (hasParts(value)) found.push(...ofFields(schema, value as Record<string, unknown>, root, path));
  return found;
}

/** A value that fits no form has the faults of the one that it comes closest to. */
function ofVariants(variants: readonly Schema[], value: unknown, root: Schema, path: string): Fault[] {
  const all = variants.map((variant) => validate(variant, value, root, path));
  if (all.some((faults) => faults.length === 0)) return [];
  const within = all.filter((faults) => faults.every((fault) => fault.path !== path)).sort((a, b) => a.length - b.length);
  return within[0] ?? [{ path, message: "fits none of the choices" }];
}

/** Returns the index of the form that a value has among several: the one that fits, or fits best. */
export function variantOf(variants: readonly Schema[], value: unknown, root: Schema): number {
  if (value === undefined) return 0;
  const faults = variants.map((variant) => validate(variant, value, root).length);
  return faults.indexOf(Math.min(...faults));
}

function ofText(schema: Schema, value: string, path: string): Fault[] {
  const length = Array.from(value).length;
  if (schema.minLength !== undefined && length < schema.minLength) return [{ path, message: schema.minLength === 1 ? "must not be empty" : `needs at least ${schema.minLength} letters` }];
  if (schema.maxLength !== undefined && length > schema.maxLength) return [{ path, message: `has more than ${schema.maxLength} letters` }];
  return schema.pattern !== undefined && !fits(schema.pattern, value) ? [{ path, message: `must match ${schema.pattern}` }] : [];
}

function fits(pattern: string, value: string): boolean {
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    return true;
  }
}

function ofNumber(schema: Schema, value: number | bigint, path: string): Fault[] {
  if (schema.minimum !== undefined && value < schema.minimum) return [{ path, message: `must be at least ${schema.minimum}` }];
  if (schema.maximum !== undefined && value > schema.maximum) return [{ path, message: `must be at most ${schema.maximum}` }];
  if (schema.exclusiveMinimum !== undefined && value <= schema.exclusiveMinimum) return [{ path, message: `must be more than ${schema.exclusiveMinimum}` }];
  if (schema.exclusiveMaximum !== undefined && value >= schema.exclusiveMaximum) return [{ path, message: `must be less than ${schema.exclusiveMaximum}` }];
  return [];
}

function ofItems(schema: Schema, value: unknown[], root: Schema, path: string): Fault[] {
  const found: Fault[] = [];
  if (schema.minItems !== undefined && value.length < schema.minItems) found.push({ path, message: `needs at least ${schema.minItems}` });
  if (schema.maxItems !== undefined && value.length > schema.maxItems) found.push({ path, message: `has more than ${schema.maxItems}` });
  if (asSchema(schema.items)) value.forEach((item, index) => found.push(...validate(schema.items, item, root, `${path}[${index}]`)));
  return found;
}

function ofFields(schema: Schema, value: Record<string, unknown>, root: Schema, path: string): Fault[] {
  const found: Fault[] = [];
  const below = (name: string): string => (path ? `${path}.${name}` : name);
  for (const name of schema.required ?? []) {
    if (value[name] === undefined) found.push({ path: below(name), message: "is missing" });
  }
  for (const [name, item] of Object.entries(value)) {
    const property = schema.properties?.[name];
    if (item === undefined) continue;
    if (property !== undefined) found.push(...validate(property, item, root, below(name)));
    else if (schema.additionalProperties === false) found.push({ path: below(name), message: "is not known" });
  }
  return found;
}

function isOfType(value: unknown, type: string): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return hasParts(value) && !Array.isArray(value);
    case "integer":
      return Number.isInteger(value) || value instanceof Long;
    case "number":
      return typeof value === "number" || value instanceof Long;
    default:
      return typeof value === type;
  }
}

function typeName(type: string): string {
  const names: Record<string, string> = { string: "a text", number: "a number", integer: "a whole number", boolean: "yes or no", array: "a list", object: "an object", null: "null" };
  return names[type] ?? type;
}

function show(value: unknown): string {
  return writeJson(value);
}

function isSame(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

/** The place that a refusal of the server names: `… failed: lines[0].amount: … is not of type …`. */
export function faultOf(text: string): Fault | null {
  const match = /failed: ([^\s:]+): (.+)$/s.exec(text);
  return match?.[1] && match[2] ? { path: match[1].replace(/^\//, "").replaceAll("/", "."), message: match[2] } : null;
}
