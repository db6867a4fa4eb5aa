import { useEffect, useState } from "preact/hooks";
import { get, send } from "../api/client.ts";
import { isRefused, refusal } from "../api/error.ts";
import { asError, useResource } from "../api/resource.ts";
import type { BulkAction, BulkPreview, ExecutionState } from "../api/types.ts";
import { bulkWords, bulkWorkflow } from "../lib/bulk.ts";
import { to } from "../lib/router.ts";
import { actor } from "../lib/settings.ts";
import { number, plural } from "../lib/text.ts";
import { type Call, CopyCalls, useAct } from "../parts/Act.tsx";
import { Dialog } from "../parts/Dialog.tsx";
import { Loading } from "../parts/Empty.tsx";
import { Id } from "../parts/Id.tsx";
import { Problem } from "../parts/Problem.tsx";
import { type Counts, Failures, wordsOfCounts } from "./BulkOutcome.tsx";

/** Executions that are selected: by the path, with its query, or by ids. */
export interface Selection {
  path: string;
  executionIds?: string[];
}

/** Says what a command would do to many executions, gives it to them as one operation, and says what came of it. */
export function BulkDialog({ action, about, selection, close, over, left }: {
  action: BulkAction;
  /** Selection in words: executions that … */
  about: string;
  selection: Selection;
  close: () => void;
  /** Called when the operation has ended. */
  over: () => void;
  /** Called when the dialog is left after an operation. */
  left: () => void;
}) {
  const [operation, setOperation] = useState("");
  const [reason, setReason] = useState("");
  const [again, setAgain] = useState(false);
  const [current, setCurrent] = useState(false);
  const { verb, done } = bulkWords[action];
  const { path, executionIds } = selection;
  const call = (dryRun: boolean): Call => ({
    method: "POST",
    path,
    body: {
      action,
      ...(executionIds ? { executionIds } : {}),
      ...(again ? { again } : {}),
      ...(current ? { definition: "current" } : {}),
      ...(reason.trim() ? { reason: reason.trim() } : {}),
      ...(dryRun ? { dryRun } : { options: actor() }),
    },
    headers: dryRun ? {} : { prefer: "respond-async" },
  });
  const preview = useResource(async (signal) => {
    const response = await send("POST", path, { body: call(true).body, signal });
    if (!response.ok) throw await refusal(response);
    return ((await response.json()) as { data: BulkPreview }).data;
  }, [action, selection, again, current]);
  const act = useAct<ExecutionState>((_, response) => setOperation(response.headers.get("x-execution-id") ?? ""));
  const { data } = preview;
  const leave = (): void => {
    close();
    if (operation) left();
  };
  const count = data && number(data.matched) + (data.isComplete ? "" : " or more");
  return (
    <Dialog title={data ? `${verb} ${count} ${data.matched === 1 && data.isComplete ? "execution" : "executions"}` : verb} close={leave}>
      {operation ? (
        <Progress id={operation} action={action} over={over} />
      ) : (
        <>
          {preview.error && <Problem error={preview.error} retry={preview.reload} />}
          {about && <p class="quiet">Of the executions that {about}.</p>}
          {!data && !preview.error && <Loading what="what would change" />}
          {data && (
            <p>
              {data.matched === 0 ? "Nothing would change." : `${count} would be ${done}, as one operation that continues when this page is closed.`}
              {data.children > 0 && ` ${plural(data.children, "execution", "executions")} that they have started would be cancelled with them.`}
              {data.skipped > data.replayed && ` ${plural(data.skipped - data.replayed, "other does", "others do")} not fit as they are now.`}
              {data.replayed > 0 && ` ${plural(data.replayed, "other was", "others were")} replayed before and would be left out.`}
              {data.unknown > 0 && ` ${plural(data.unknown, "is", "are")} no longer there.`}
            </p>
          )}
          {action === "cancel" && data && data.matched > 0 && <p>This is final: they end and cannot be resumed. What their steps did outside stays done, unless their workflow compensates on a cancel.</p>}
          {action === "resume" && data && data.matched === 0 && <p class="quiet">Only executions that were suspended by a request are resumed. What waits for people is answered in the inbox.</p>}
          {action === "suspend" && data && data.matched === 0 && <p class="quiet">Only running executions are suspended.</p>}
          {action === "replay" && data && data.matched > 0 && <p class="quiet">A new execution begins for each, at the step that failed or the first one that was undone. The failed ones stay as they are.</p>}
          {action === "replay" && data && (
            <>
              {(data.replayed > 0 || again) && (
                <label class="inline">
                  <input type="checkbox" checked={again} onChange={(event) => setAgain(event.currentTarget.checked)} /> Also those that were replayed before: their steps run once more
                </label>
              )}
              <label class="inline">
                <input type="checkbox" checked={current} onChange={(event) => setCurrent(event.currentTarget.checked)} /> With the workflows as they are configured now, not as they were
              </label>
            </>
          )}
          {(action === "cancel" || action === "suspend") && data && data.matched > 0 && (
            <div class="field">
              <label for="bulk-reason">Reason</label>
              <input id="bulk-reason" value={reason} placeholder="each execution records it" onInput={(event) => setReason(event.currentTarget.value)} />
            </div>
          )}
          {act.error && <Problem error={act.error} />}
        </>
      )}
      <div class="actions">
        {!operation && (
          <button type="button" class={`button ${action === "cancel" ? "danger" : "primary"}`} disabled={!data || data.matched === 0 || act.isBusy} onClick={() => void act.run(call(false))}>
            {verb} {count}
          </button>
        )}
        <button type="button" class="button" onClick={leave}>
          Close
        </button>
        {!operation && <CopyCalls calls={() => [call(false)]} />}
      </div>
    </Dialog>
  );
}

/** Follows an operation until it ends. */
function Progress({ id, action, over }: { id: string; action: BulkAction; over: () => void }) {
  const [state, setState] = useState<ExecutionState>();
  const [failure, setFailure] = useState<ReturnType<typeof asError>>();
  const [round, setRound] = useState(0);
  const isOver = state !== undefined && state.endAt !== null;
  useEffect(() => {
    if (isOver) over();
  }, [isOver]);
  useEffect(() => {
    if (isOver) return;
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let pause = 100;
    const path = { id: bulkWorkflow, executionId: id };
    const look = async (): Promise<void> => {
      const looked = await get("/workflows/{id}/executions/{executionId}/state", { path, query: { values: false }, signal: controller.signal });
      // The counts are its result, which is read once.
      setState(looked.endAt === null ? looked : await get("/workflows/{id}/executions/{executionId}/state", { path, signal: controller.signal }));
      setFailure(undefined);
    };
    const read = (): void => {
      let again = true;
      look()
        .catch((error: unknown) => {
          if (!controller.signal.aborted) setFailure(asError(error));
          // Else a token would be asked for once a second.
          again = !isRefused(asError(error));
        })
        .finally(() => {
          // A small operation is over at once, a large one takes seconds.
          if (again && !controller.signal.aborted) timer = setTimeout(read, pause);
          pause = Math.min(pause * 2, 1000);
        });
    };
    read();
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [id, isOver, round]);
  const counts = state?.status === "completed" ? (state.result as unknown as Counts) : undefined;
  return (
    <>
      <p role="status">
        {counts
          ? wordsOfCounts(counts, action)
          : isOver
            ? `The operation is ${state.status}`
            : "Working…"}
        {" · "}
        operation <Id id={id} href={to("executions", bulkWorkflow, id)} />
      </p>
      {failure && <Problem error={failure} retry={isRefused(failure) ? () => setRound(round + 1) : undefined} />}
      {counts && <Failures counts={counts} />}
    </>
  );
}
