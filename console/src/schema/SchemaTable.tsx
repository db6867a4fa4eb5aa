import { plural } from "../lib/text.ts";
import { JsonBox } from "../parts/Json.tsx";
import { asSchema, fieldsOf, resolve, type Schema, shapeOf, typeOf } from "./schema.ts";

interface Line {
  path: string;
  type: string;
  required: boolean;
  rules: string;
  description: string;
}

/** A schema as people read it: one line per value. */
export function SchemaTable({ schema, title }: { schema: unknown; title: string }) {
  const root = asSchema(schema);
  if (!root) return <p class="quiet">{title}: anything.</p>;
  const lines = linesOf(root, root, "", 0);
  if (lines.length === 0) return <JsonBox value={schema} title={title} />;
  return (
    <section>
      <h3>{title}</h3>
      <div class="scroll" tabIndex={0} role="group" aria-label={title}>
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Type</th>
              <th scope="col">Required</th>
              <th scope="col">Meaning</th>
            </tr>
          </thead>
          <tbody>
            {lines.map((line) => (
              <tr key={line.path}>
                <td>
                  <code>{line.path}</code>
                </td>
                <td>{line.type}</td>
                <td>{line.required ? "yes" : "no"}</td>
                <td>
                  <bdi>{line.description}</bdi> <span class="quiet">{line.rules}</span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function linesOf(given: Schema, root: Schema, prefix: string, depth: number): Line[] {
  if (depth > 4) return [];
  return fieldsOf(resolve(given, root)).flatMap(({ name, schema, required }) => {
    const declared = resolve(schema, root);
    const path = prefix ? `${prefix}.${name}` : name;
    const shape = shapeOf(declared, root);
    const line: Line = { path, type: typeName(declared, root), required, rules: rulesOf(declared), description: declared.description ?? "" };
    if (shape.is === "object") return [line, ...linesOf(declared, root, path, depth + 1)];
    if (shape.is === "array") return [line, ...linesOf(shape.items, root, `${path}[]`, depth + 1)];
    return [line];
  });
}

function typeName(schema: Schema, root: Schema): string {
  const shape = shapeOf(schema, root);
  if (shape.is === "choice") return "one of";
  if (shape.is === "variants") return `one of ${shape.variants.length} forms`;
  if (shape.is === "array") return `list of ${typeOf(resolve(shape.items, root)) ?? "values"}`;
  return [typeOf(schema) ?? "anything", schema.format].filter(Boolean).join(", ");
}

function rulesOf(schema: Schema): string {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, pattern } = schema;
  const options = schema.enum?.map((option) => JSON.stringify(option)).join(", ");
  return [
    options,
    minimum !== undefined && `at least ${minimum}`,
    maximum !== undefined && `at most ${maximum}`,
    minLength !== undefined && `at least ${plural(minLength, "letter")}`,
    maxLength !== undefined && `at most ${plural(maxLength, "letter")}`,
    minItems !== undefined && `at least ${plural(minItems, "item")}`,
    maxItems !== undefined && `at most ${plural(maxItems, "item")}`,
    pattern !== undefined && `matches ${pattern}`,
    schema.default !== undefined && `default ${JSON.stringify(schema.default)}`,
  ]
    .filter(Boolean)
    .join("; ");
}
