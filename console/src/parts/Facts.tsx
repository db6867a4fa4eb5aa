import type { ComponentChildren } from "preact";
import { hasParts, Long } from "../lib/json.ts";
import { Json, Letters } from "./Json.tsx";

/** Names with values, as people read them: nothing that is plain needs braces. */
export function Readable({ value }: { value: unknown }) {
  if (isTable(value)) return <Rows rows={value} />;
  if (hasParts(value) && !Array.isArray(value)) {
    const entries = Object.entries(value);
    if (entries.length > 0 && entries.length <= 30) {
      return (
        <dl class="facts">
          {entries.map(([name, item]) => (
            <Fact key={name} name={name}>
              {isPlain(item) ? <Plain value={item} /> : isTable(item) ? <Rows rows={item} /> : <Json value={item} open={1} />}
            </Fact>
          ))}
        </dl>
      );
    }
  }
  return isPlain(value) ? <Plain value={value} /> : <Json value={value} />;
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>
        <bdi>{name}</bdi>
      </dt>
      <dd>{children}</dd>
    </div>
  );
}

function isPlain(value: unknown): boolean {
  return !hasParts(value);
}

/** Up to 50 objects with plain values are a table. */
function isTable(value: unknown): value is Record<string, unknown>[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > 50) return false;
  const names = new Set<string>();
  for (const row of value as unknown[]) {
    if (!hasParts(row) || Array.isArray(row)) return false;
    for (const [name, item] of Object.entries(row)) {
      if (!isPlain(item)) return false;
      names.add(name);
    }
  }
  return names.size > 0 && names.size <= 6;
}

function Rows({ rows }: { rows: Record<string, unknown>[] }) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Table">
      <table class="plain">
        <thead>
          <tr>
            {names.map((name) => (
              <th key={name} scope="col">
                <bdi>{name}</bdi>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {names.map((name) => (
                <td key={name}>
                  <Plain value={row[name]} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Plain({ value }: { value: unknown }) {
  if (value === undefined) return <span class="quiet">–</span>;
  if (value === null) return <span class="quiet">null</span>;
  if (typeof value === "boolean") return <>{value ? "yes" : "no"}</>;
  return <Letters text={String(value)} class={typeof value === "number" || value instanceof Long ? "number" : "prose"} />;
}
