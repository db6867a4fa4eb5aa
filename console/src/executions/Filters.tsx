import { useEffect, useState } from "preact/hooks";
import { get } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { nameOf, type Named } from "../lib/named.ts";
import { go, setParams, to } from "../lib/router.ts";
import { fromInput, toInput } from "../schema/typed.ts";
import { removedOf } from "../workflows/removed.ts";
import { between, countOf, type Filter, isEmpty, isWholeHash, ranges, statuses } from "./filter.ts";

/** The filter of the list as fields; on a phone behind a button, as they would fill the window. */
export function Filters({ filter, workflows }: { filter: Filter; workflows: readonly Named[] | undefined }) {
  const counts = useResource((signal) => get("/workflows/executions/counts", { signal }), []);
  const removed = workflows && counts.data ? removedOf(counts.data.workflows, workflows) : [];
  const [isOpen, setOpen] = useState(false);
  const count = countOf(filter);
  const isListed = [...(workflows ?? []).map(({ id }) => id), ...removed.map(({ workflowId }) => workflowId)].includes(filter.workflow);
  return (
    <>
      <button type="button" class="button narrow-only" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {count > 0 ? `Filters (${count})` : "Filters"}
      </button>
      <form class={`filters foldable ${isOpen ? "open" : ""}`} role="search" onSubmit={(event) => event.preventDefault()}>
        <label>
          Status
          <select value={filter.status} onChange={(event) => setParams({ status: event.currentTarget.value }, "push")}>
            <option value="">any</option>
            {Object.entries(statuses).map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <label>
          Workflow
          <select value={filter.workflow} onChange={(event) => setParams({ workflow: event.currentTarget.value }, "push")}>
            <option value="">any</option>
            {filter.workflow && !isListed && <option value={filter.workflow}>{nameOf(workflows, filter.workflow)}</option>}
            {workflows?.map((each) => (
              <option key={each.id} value={each.id}>
                {each.name}
              </option>
            ))}
            {removed.length > 0 && (
              <optgroup label="Removed">
                {removed.map(({ workflowId }) => (
                  <option key={workflowId} value={workflowId}>
                    {workflowId}
                  </option>
                ))}
              </optgroup>
            )}
          </select>
        </label>
        <label>
          {filter.status === "error" ? "Ended" : "Started"}
          <select value={filter.range} onChange={(event) => setParams({ range: event.currentTarget.value, from: "", to: "" }, "push")}>
            <option value="">any time</option>
            {Object.entries(ranges).map(([value, { text }]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
            <option value={between}>between…</option>
          </select>
        </label>
        {filter.range === between && (
          <>
            <label>
              From
              <input type="datetime-local" value={toInput(filter.from, "date-time")} onChange={(event) => setParams({ from: fromInput(event.currentTarget.value, "date-time") })} />
            </label>
            <label>
              To
              <input type="datetime-local" value={toInput(filter.to, "date-time")} onChange={(event) => setParams({ to: fromInput(event.currentTarget.value, "date-time") })} />
            </label>
          </>
        )}
        <TextFilter name="id" label="Id begins with" value={filter.id} />
        <details class="more" open={texts.some(([name]) => filter[name] !== "")}>
          <summary>More</summary>
          <div class="filters">
            {texts.map(([name, label, example]) => (
              <TextFilter key={name} name={name} label={label} value={filter[name]} example={example} />
            ))}
          </div>
        </details>
        {!isEmpty(filter) && (
          <button type="button" class="bare small clear" onClick={() => go(to("executions"))}>
            clear
          </button>
        )}
      </form>
      {filter.version && !isWholeHash(filter.version) && <ShortHash filter={filter} />}
    </>
  );
}

/** Completes the begin of a version's hash, which the API takes whole only; or says that it is no hash. */
function ShortHash({ filter }: { filter: Filter }) {
  const { workflow, version } = filter;
  const known = useResource(async (signal) => (workflow ? get("/workflows/{id}/versions", { path: { id: workflow }, signal }) : undefined), [workflow]);
  const fitting = (known.data?.versions ?? []).map(({ definitionHash }) => definitionHash).filter((hash) => hash.startsWith(version));
  const [only] = fitting;
  useEffect(() => {
    if (only && fitting.length === 1) setParams({ version: only });
  }, [only, fitting.length]);
  if (known.loading || fitting.length === 1) return null;
  return (
    <p class="note">
      A version has a hash of 64 letters, and is found by all of them.{" "}
      {!workflow && "With a workflow chosen, its begin is enough."}
      {workflow && known.data && (fitting.length === 0 ? "No version of this workflow that has executions begins with these." : `${fitting.length} versions of this workflow begin with these: type more of them.`)}
    </p>
  );
}

/** Filters that are rarely used. */
const texts = [
  ["error", "Error has the text", "any"],
  ["user", "User", "any"],
  ["parent", "Started by execution", "any"],
  ["via", "Started through", "mcp, mcp:NAME, openai"],
  ["replayOf", "Replays of", "any"],
  ["version", "Version of the workflow", "any"],
] as const;

/** A filter that counts when nothing was typed for a moment. */
function TextFilter({ name, label, value, example = "any" }: { name: string; label: string; value: string; example?: string }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const apply = (): void => {
    if (text.trim() !== value) setParams({ [name]: text.trim() }, "push");
  };
  useEffect(() => {
    if (text.trim() === value) return;
    const timer = setTimeout(apply, 400);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <label>
      {label}
      <input
        type="text"
        value={text}
        placeholder={example}
        spellcheck={false}
        onInput={(event) => setText(event.currentTarget.value)}
        onBlur={apply}
        onKeyDown={(event) => {
          if (event.key === "Enter") apply();
        }}
      />
    </label>
  );
}
