import { JsonBox } from "../parts/Json.tsx";
import { linesOf } from "./lines.ts";
import { asSchema } from "./schema.ts";

/** A schema as people read it: one line per value. */
export function SchemaTable({ schema, title }: { schema: unknown; title: string }) {
  const root = asSchema(schema);
  if (!root) return <p class="quiet">{title}: anything.</p>;
  const lines = linesOf(root, root);
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
            {lines.map((line, index) => (
              <tr key={index}>
                <td>
                  <code>{line.path}</code>
                </td>
                <td>{line.type}</td>
                <td>{line.required ? "yes" : "no"}</td>
                <td>
                  <bdi>{line.description}</bdi>
                  {line.description && line.rules && " · "}
                  <span class="quiet">{line.rules}</span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
