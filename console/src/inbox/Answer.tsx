import { useRef, useState } from "preact/hooks";
import { curl } from "../api/curl.ts";
import type { ApiError } from "../api/error.ts";
import { me } from "../api/permissions.ts";
import type { AskDetail } from "../api/types.ts";
import { boot } from "../lib/boot.ts";
import { writeJson } from "../lib/json.ts";
import { actor } from "../lib/settings.ts";
import { type Call, useAct, whyNot } from "../parts/Act.tsx";
import { Copy } from "../parts/Copy.tsx";
import { Problem } from "../parts/Problem.tsx";
import { type Draft, Editor } from "../schema/Editor.tsx";
import { focusFault } from "../schema/focus.ts";
import { asSchema, initial } from "../schema/schema.ts";
import { validate } from "../schema/validate.ts";
import { approvalOf, declining, isExcluded, whyNotOwn } from "./asks.ts";
import { type AskedPage, done, pageOf } from "./page.ts";
import { PageQuestion } from "./PageQuestion.tsx";

/** Answers an ask, with the form of its schema. */
export function Answer({ ask, answered }: { ask: AskDetail; answered: () => void }) {
  const { run, error, isBusy } = useAct<unknown>(answered);
  const callOf = (data: unknown): Call => ({
    method: "POST",
    path: `/inbox/${encodeURIComponent(ask.askId)}/answer`,
    body: { data, options: actor() },
  });
  const props = { ask, run, error, isBusy, callOf, why: whyNot(callOf(null).path) };
  if (isExcluded(ask, me())) return <p class="note">{whyNotOwn}.</p>;
  const page = ask.kind === "approval" ? null : pageOf(ask.schema);
  return (
    <>
      {ask.kind === "approval" ? <Approval {...props} /> : page ? <ByPage {...props} page={page} /> : <ByForm {...props} />}
      {/* On a phone nothing can be pointed at. */}
      {props.why !== "" && !boot.readOnly && <p class="note refused">{props.why}.</p>}
    </>
  );
}

interface FormProps {
  ask: AskDetail;
  run: (call: Call) => Promise<void>;
  error: ApiError | undefined;
  isBusy: boolean;
  callOf: (data: unknown) => Call;
  /** Reason for which it cannot be answered here; empty if it can. */
  why: string;
}

function ByForm({ ask, run, error, isBusy, callOf, why }: FormProps) {
  const [draft, setDraft] = useState<Draft>(() => ({ value: initial(asSchema(ask.schema) ?? {}), broken: null }));
  const [tried, setTried] = useState(false);
  const data = draft.value === undefined ? {} : draft.value;
  const form = useRef<HTMLFormElement>(null);
  const submit = (): void => {
    if (isBusy || why !== "") return;
    setTried(true);
    if (draft.broken === null && validate(ask.schema, data).length === 0) void run(callOf(data));
    else focusFault(form.current);
  };
  return (
    <form
      ref={form}
      class="answer"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
      }}
    >
      <Editor schema={ask.schema} draft={draft} change={setDraft} error={error} showFaults={tried} label="Answer" />
      {error && <Problem error={error} />}
      <div class="actions">
        <button type="submit" class="button primary" disabled={isBusy || why !== ""} title={why}>
          {isBusy ? "Sending…" : "Answer"}
        </button>
        {ask.canDecline && (
          <button type="button" class="button danger" disabled={isBusy || why !== ""} title={why || "Answers that nothing is answered. The call continues with that"} onClick={() => void run(callOf(declining))}>
            Decline
          </button>
        )}
        <Copy text={() => curl("POST", callOf(data).path, callOf(data).body)} label="Copy as curl" />
      </div>
    </form>
  );
}

/** A page that an MCP server wants opened. */
function ByPage({ page, run, error, isBusy, callOf, why }: FormProps & { page: AskedPage }) {
  return (
    <div class="answer">
      <PageQuestion page={page} isBusy={isBusy} why={why} give={(answer) => void run(callOf(answer))} />
      {error && <Problem error={error} />}
      <Copy text={() => curl("POST", callOf(done).path, callOf(done).body)} label="Copy as curl" class="bare small" />
    </div>
  );
}

/** An approval of a call: yes or no, why, and the arguments if they may be changed. */
function Approval({ ask, run, error, isBusy, callOf, why }: FormProps) {
  const [reason, setReason] = useState("");
  const [draft, setDraft] = useState<Draft>({ value: ask.payload, broken: null });
  const [edits, setEdits] = useState(false);
  const mayEdit = asSchema(ask.schema)?.properties?.input !== undefined;
  const isChanged = edits && writeJson(draft.value) !== writeJson(ask.payload);
  const dataOf = (approved: boolean): unknown => approvalOf(approved, reason, isChanged ? draft.value : undefined);
  return (
    <form class="answer" onSubmit={(event) => event.preventDefault()}>
      {mayEdit && (
        <label class="inline edits">
          <input type="checkbox" checked={edits} onChange={(event) => setEdits(event.currentTarget.checked)} /> change the arguments before the call
        </label>
      )}
      {edits && <Editor schema={{}} draft={draft} change={setDraft} error={error} showFaults={false} label="Arguments" />}
      <div class="field">
        <label for={`reason-${ask.askId}`}>
          Reason <span class="quiet small">optional</span>
        </label>
        <input id={`reason-${ask.askId}`} type="text" value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
      </div>
      {error && <Problem error={error} />}
      <div class="actions">
        <button type="button" class="button primary" disabled={isBusy || (edits && draft.broken !== null) || why !== ""} title={why} onClick={() => void run(callOf(dataOf(true)))}>
          {isChanged ? "Approve as changed" : "Approve"}
        </button>
        <button type="button" class="button danger" disabled={isBusy || why !== ""} title={why} onClick={() => void run(callOf(dataOf(false)))}>
          Refuse
        </button>
        <Copy text={() => curl("POST", callOf(dataOf(true)).path, callOf(dataOf(true)).body)} label="Copy as curl" />
      </div>
    </form>
  );
}
