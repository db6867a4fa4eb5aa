import { useRef, useState } from "preact/hooks";
import { curl } from "../api/curl.ts";
import type { WorkflowDetail } from "../api/types.ts";
import { go, to } from "../lib/router.ts";
import { actor } from "../lib/settings.ts";
import { type Call, useAct, whyNot } from "../parts/Act.tsx";
import { Copy } from "../parts/Copy.tsx";
import { Problem } from "../parts/Problem.tsx";
import { type Draft, Editor } from "../schema/Editor.tsx";
import { focusFault } from "../schema/focus.ts";
import { asSchema, initial } from "../schema/schema.ts";
import { validate } from "../schema/validate.ts";

/** Starts an execution and goes to it. */
export function Run({ workflow }: { workflow: WorkflowDetail }) {
  const [draft, setDraft] = useState<Draft>(() => ({ value: initial(asSchema(workflow.inputSchema) ?? {}) ?? {}, broken: null }));
  const [executionId, setExecutionId] = useState("");
  const [tried, setTried] = useState(false);
  const { run, error, isBusy } = useAct<{ executionId: string }>((data, response) => {
    go(to("executions", workflow.id, response.headers.get("x-execution-id") ?? data.executionId));
  });
  const call: Call = {
    method: "POST",
    path: `/workflows/${encodeURIComponent(workflow.id)}/execute`,
    body: { input: draft.value, options: { ...actor(), ...(executionId.trim() ? { executionId: executionId.trim() } : {}) } },
    // It answers when the execution is recorded, and does not wait for its end.
    headers: { prefer: "respond-async" },
  };
  const form = useRef<HTMLFormElement>(null);
  const submit = (): void => {
    if (isBusy || whyNot(call.path) !== "") return;
    setTried(true);
    if (draft.broken === null && validate(workflow.inputSchema, draft.value).length === 0) void run(call);
    else focusFault(form.current);
  };
  return (
    <form
      ref={form}
      class="runform"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
      }}
    >
      <h2>Run</h2>
      <Editor schema={workflow.inputSchema} draft={draft} change={setDraft} error={error} showFaults={tried} label="Input" />
      <details>
        <summary class="quiet small">Id of the execution</summary>
        <div class="field">
          <input type="text" aria-label="Id of the execution" placeholder="chosen by the server" value={executionId} onInput={(event) => setExecutionId(event.currentTarget.value)} />
          <p class="hint">A second request with the same id starts no second execution.</p>
        </div>
      </details>
      {error && <Problem error={error} />}
      <div class="actions">
        <button type="submit" class="button primary" disabled={isBusy || whyNot(call.path) !== ""} title={whyNot(call.path)}>
          {isBusy ? "Starting…" : "Start"}
        </button>
        <Copy text={() => curl(call.method, call.path, call.body)} label="Copy as curl" />
      </div>
    </form>
  );
}
