import { useState } from "preact/hooks";
import type { ApiError } from "../api/error.ts";
import { writeJson } from "../lib/json.ts";
import { SchemaFields } from "./Form.tsx";
import { asSchema, type Schema, shapeOf } from "./schema.ts";
import { Broken, fromJson, hasBroken } from "./typed.ts";
import { type Fault, faultOf, validate } from "./validate.ts";

export interface Draft {
  value: unknown;
  /** Text that was typed, if it is not JSON (yet). */
  broken: string | null;
}

/** A value of a schema: fields, or JSON that is checked as one types. */
export function Editor({ schema, draft, change, error, showFaults, label }: {
  schema: unknown;
  draft: Draft;
  change: (draft: Draft) => void;
  error?: ApiError | undefined;
  showFaults: boolean;
  label: string;
}) {
  const root: Schema = asSchema(schema) ?? {};
  const hasForm = shapeOf(root, root).is !== "json";
  const [mode, setMode] = useState<"form" | "json">(hasForm ? "form" : "json");
  const told = error ? faultOf(error.message) : null;
  const faults: Fault[] = showFaults || mode === "json" ? validate(schema, draft.value) : [];
  if (told && !faults.some((fault) => fault.path === told.path)) faults.push(told);
  return (
    <div class="editor">
      {hasForm && (
        <div class="tabs small" role="group" aria-label={`${label} as`}>
          {(["form", "json"] as const).map((each) => (
            <button key={each} type="button" aria-pressed={mode === each} onClick={() => setMode(each)} disabled={each === "form" ? draft.broken !== null : hasBroken(draft.value)}>
              {each === "form" ? "Form" : "JSON"}
            </button>
          ))}
        </div>
      )}
      {mode === "form" ? (
        <SchemaFields schema={root} value={draft.value} change={(value) => change({ value, broken: null })} faults={faults} />
      ) : (
        <JsonEditor draft={draft} change={change} faults={faults} label={label} />
      )}
    </div>
  );
}

function JsonEditor({ draft, change, faults, label }: { draft: Draft; change: (draft: Draft) => void; faults: Fault[]; label: string }) {
  const [text, setText] = useState(draft.broken ?? writeJson(draft.value, 2) ?? "");
  const read = fromJson(text);
  const wrong = read instanceof Broken ? read.why : "";
  const put = (typed: string): void => {
    setText(typed);
    const value = fromJson(typed);
    change(value instanceof Broken ? { ...draft, broken: typed } : { value, broken: null });
  };
  return (
    <div class="field">
      <textarea
        class="code"
        aria-label={`${label} as JSON`}
        rows={Math.min(20, Math.max(6, text.split("\n").length + 1))}
        value={text}
        spellcheck={false}
        onInput={(event) => put(event.currentTarget.value)}
      />
      <div role="status" aria-live="polite">
        {wrong ? (
          <p class="fault">{wrong}</p>
        ) : faults.length > 0 ? (
          <ul class="faults">
            {faults.slice(0, 8).map((fault) => (
              <li key={fault.path + fault.message} class="fault">
                <code>{fault.path || "value"}</code> {fault.message}
              </li>
            ))}
          </ul>
        ) : (
          <p class="quiet small">JSON that fits the schema</p>
        )}
      </div>
    </div>
  );
}
