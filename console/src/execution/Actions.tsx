import { useState } from "preact/hooks";
import { get } from "../api/client.ts";
import { curl } from "../api/curl.ts";
import type { ApiError } from "../api/error.ts";
import { me } from "../api/permissions.ts";
import { asError, useResource } from "../api/resource.ts";
import type { Ask, Awaited, ExecutionState, Outlook, WorkflowDetail } from "../api/types.ts";
import { boot } from "../lib/boot.ts";
import { bulkWorkflow } from "../lib/bulk.ts";
import { go, to } from "../lib/router.ts";
import { actor } from "../lib/settings.ts";
import { firstLine, middle } from "../lib/text.ts";
import { Answer } from "../inbox/Answer.tsx";
import { isExcluded, whyNotOwn } from "../inbox/asks.ts";
import { ActDialog, type Call, CopyCalls, useAct, whyNot } from "../parts/Act.tsx";
import { Copy } from "../parts/Copy.tsx";
import { Dialog } from "../parts/Dialog.tsx";
import { Loading } from "../parts/Empty.tsx";
import { Readable } from "../parts/Facts.tsx";
import { visible } from "../parts/Json.tsx";
import { Menu } from "../parts/Menu.tsx";
import { Problem } from "../parts/Problem.tsx";
import { type Draft, Editor } from "../schema/Editor.tsx";
import { hasBroken } from "../schema/typed.ts";
import { saveRecord } from "./record.ts";
import type { Ids } from "./Value.tsx";

interface ActionsProps {
  workflowId: string;
  executionId: string;
  state: ExecutionState | undefined;
  outlook: Outlook | undefined;
  definition: WorkflowDetail | undefined;
  /** Top-level step that is selected: a replay begins there. */
  stepId: string;
  /** True while the page shows the execution as it was: an action would meet it as it is. */
  isPast: boolean;
}

const whyNotInPast = "This shows the past: go to the newest event to act";

type Open = "answer" | "suspend" | "cancel" | "replay" | null;

/** Offers the actions that an execution can take as it is now. */
export function Actions(props: ActionsProps) {
  const { workflowId, executionId, outlook, isPast } = props;
  const [open, setOpen] = useState<Open>(null);
  const base = `/workflows/${encodeURIComponent(workflowId)}/executions/${encodeURIComponent(executionId)}`;
  const waits = outlook?.waitsFor ?? [];
  const hold = waits.find((wait) => wait.kind === "hold");
  const asked = waits.filter((wait) => (wait.asks?.length ?? 0) > 0);
  const isOver = outlook?.ended !== undefined;
  // A reversal has run no step: there is none to run again.
  const isReplayable = workflowId !== bulkWorkflow && props.state?.reversalOf === undefined;
  const close = (): void => setOpen(null);
  // On a phone nothing can be pointed at: reasons are said once below as well.
  const refused: string[] = [];
  const button = (which: Open, text: string, style = ""): preact.JSX.Element => {
    const isOwn = which === "answer" && asked.every((wait) => wait.asks?.every((ask) => isExcluded(ask, me())));
    const why = isPast ? whyNotInPast : isOwn ? whyNotOwn : whyNot(which === "answer" ? "/inbox/:/answer" : `${base}/${which}`);
    if (why && !boot.readOnly && !isPast) refused.push(`${text}: ${why}.`);
    return (
      <button type="button" class={`button ${style}`} onClick={() => setOpen(which)} disabled={why !== ""} title={why}>
        {text}
      </button>
    );
  };
  return (
    <>
      <div class="actions">
        {asked.length > 0 && button("answer", "Answer", "primary")}
        {hold && <Resume base={base} hold={hold} isPast={isPast} />}
        {outlook && !isOver && !hold && button("suspend", "Suspend")}
        {outlook && isReplayable && button("replay", isOver ? "Replay" : "Replay as another")}
        {outlook && !isOver && button("cancel", "Cancel", "danger")}
        <Menu head="More">
          <Copy text={() => curl("GET", `${base}/state`)} label="Copy the state as curl" class="bare" />
          <Save ids={{ id: workflowId, executionId }} />
        </Menu>
        {open === "answer" && <AnswerDialog waits={asked} close={close} />}
        {open === "suspend" && <ReasonDialog title="Suspend" verb="Suspend" path={`${base}/suspend`} close={close} text="Steps that run now end; no further one begins until it is resumed." />}
        {open === "cancel" && <ReasonDialog title="Cancel" verb="Cancel it" danger path={`${base}/cancel`} close={close} text="It ends now and cannot be resumed. What its steps did outside stays done." />}
        {open === "replay" && <ReplayDialog {...props} base={base} close={close} />}
      </div>
      {isPast && <p class="note refused">{whyNotInPast}.</p>}
      {refused.length > 0 && <p class="note refused">{refused.join(" ")}</p>}
    </>
  );
}

/** Saves the record, which is read whole. */
function Save({ ids }: { ids: Ids }) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const save = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    await saveRecord(ids).catch((failure: unknown) => setError(asError(failure)));
    setBusy(false);
  };
  return (
    <>
      <button type="button" class="bare" disabled={isBusy} onClick={() => void save()}>
        {isBusy ? "Reading…" : "Download the record"}
      </button>
      {error && <Problem error={error} retry={() => void save()} />}
    </>
  );
}

function Resume({ base, hold, isPast }: { base: string; hold: Awaited; isPast: boolean }) {
  const { run, error, isBusy } = useAct<unknown>(() => undefined);
  const call: Call = { method: "POST", path: `${base}/resume`, body: { options: { ...(hold.suspensionId ? { suspensionId: hold.suspensionId } : {}), ...actor() } } };
  const why = isPast ? whyNotInPast : whyNot(call.path);
  return (
    <>
      <button type="button" class="button primary" disabled={isBusy || why !== ""} title={why} onClick={() => void run(call)}>
        Resume
      </button>
      <CopyCalls calls={() => [call]} class="bare small" />
      {error && <Problem error={error} />}
    </>
  );
}

function ReasonDialog({ title, verb, path, text, danger, close }: { title: string; verb: string; path: string; text: string; danger?: boolean; close: () => void }) {
  const [reason, setReason] = useState("");
  const body = { ...(reason.trim() ? { reason: reason.trim() } : {}), options: actor() };
  return (
    <ActDialog title={title} verb={verb} danger={danger ?? false} call={{ method: "POST", path, body }} done={close} close={close}>
      <p class="quiet">{text}</p>
      <div class="field">
        <label for="reason">
          Reason <span class="quiet small">optional</span>
        </label>
        <input id="reason" type="text" autofocus value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
      </div>
    </ActDialog>
  );
}

function AnswerDialog({ waits, close }: { waits: Awaited[]; close: () => void }) {
  const asks = waits.flatMap((wait) => wait.asks ?? []);
  const [chosen, setChosen] = useState(asks[0]?.askId ?? "");
  const ask = useResource((signal) => get("/inbox/{askId}", { path: { askId: chosen }, signal }), [chosen]);
  return (
    <Dialog title={visible(ask.data?.reason ?? "") || "Answer"} close={close}>
      {asks.length > 1 && (
        <select aria-label="Question" value={chosen} onChange={(event) => setChosen(event.currentTarget.value)}>
          {asks.map((each) => (
            <option key={each.askId} value={each.askId}>
              {wordsOfAsk(each, asks)}
            </option>
          ))}
        </select>
      )}
      {ask.error && <Problem error={ask.error} retry={ask.reload} />}
      {ask.loading && !ask.data && <Loading what="the question" />}
      {ask.data && (
        <>
          {ask.data.payload !== null && ask.data.payload !== undefined && <Readable value={ask.data.payload} />}
          <Answer key={ask.data.askId} ask={ask.data} answered={close} />
        </>
      )}
    </Dialog>
  );
}

/** The question; with its place where another one has the same words. */
function wordsOfAsk(ask: Ask, all: readonly Ask[]): string {
  const words = firstLine(ask.reason, 80) || "A question without words";
  const place = "path" in ask.of ? ask.of.path : `${ask.of.toolName} ${middle(ask.of.toolCallId, 12)}`;
  return all.some((other) => other !== ask && other.reason === ask.reason) ? `${words} · ${place}` : words;
}

function ReplayDialog({ base, workflowId, executionId, state, outlook, definition, stepId, close }: ActionsProps & { base: string; close: () => void }) {
  const begun = new Set((state?.steps ?? []).filter((step) => !step.path.includes("/") && !step.path.includes("[")).map((step) => step.stepId));
  const named = outlook?.ended?.replayFrom ?? [];
  const recorded = named.length > 0 ? named : (definition?.steps ?? []).map((step) => step.id).filter((id) => begun.has(id));
  const [withInput, setWithInput] = useState(false);
  const [draft, setDraft] = useState<Draft | null>(null);
  // Its values are only needed, and read, for another input.
  const given = useResource(async (signal) => (withInput ? get("/workflows/{id}/executions/{executionId}/state", { path: { id: workflowId, executionId }, signal }) : null), [withInput]);
  const input = draft ?? (given.data ? { value: given.data.input, broken: null } : null);
  const [current, setCurrent] = useState(false);
  // Of the workflow as it is now only steps that it still has.
  const latest = useResource(async (signal) => (current ? get("/workflows/{id}", { path: { id: workflowId }, signal }) : null), [current]);
  const steps = latest.data ? recorded.filter((id) => latest.data?.steps.some((step) => step.id === id)) : recorded;
  const [chosen, setFrom] = useState(stepId);
  const from = steps.includes(chosen) ? chosen : (steps.at(-1) ?? "");
  const body = {
    ...(from ? { stepId: from } : {}),
    ...(current ? { definition: "current" } : {}),
    ...(withInput ? { input: input?.value } : {}),
    options: actor(),
  };
  const before = from !== "" && from !== steps[0];
  const show = (id: string): void => {
    if (!id) return;
    close();
    go(to("executions", workflowId, id));
  };
  const call: Call | null = !withInput || (input?.broken === null && !hasBroken(input.value)) ? { method: "POST", path: `${base}/replay`, body, headers: { prefer: "respond-async" } } : null;
  return (
    <ActDialog<{ executionId?: string }>
      title="Replay"
      verb="Replay"
      wide
      call={call}
      close={close}
      done={(data, response) => show(response.headers.get("x-execution-id") ?? data.executionId ?? "")}
      // The replay answers when the new execution has ended: one that fails is an error, and is there.
      failed={(error) => show(error.executionId)}
    >
      {(error) => (
        <>
          <p class="quiet">Starts another execution. Steps before the chosen one keep their outputs and do not run again.</p>
          <div class="field">
            <label for="from">From step</label>
            <select id="from" value={from} onChange={(event) => setFrom(event.currentTarget.value)}>
              {steps.length === 0 && <option value="">{current ? "none of its steps is left" : "the step that failed"}</option>}
              {steps.map((id) => (
                <option key={id} value={id}>
                  {id}
                </option>
              ))}
            </select>
          </div>
          <label class="inline">
            <input type="checkbox" checked={current} onChange={(event) => setCurrent(event.currentTarget.checked)} /> With the workflow as it is configured now, not as it was
          </label>
          <label class="inline">
            <input type="checkbox" checked={withInput} onChange={(event) => setWithInput(event.currentTarget.checked)} /> With another input
          </label>
          {withInput && before && <p class="note">Steps before {from} keep the outputs that the old input gave. Choose the first step to run all of them with the new one.</p>}
          {withInput && given.error && <Problem error={given.error} retry={given.reload} />}
          {withInput && input && <Editor schema={definition?.inputSchema} draft={input} change={setDraft} error={error} showFaults label="Input" />}
        </>
      )}
    </ActDialog>
  );
}
