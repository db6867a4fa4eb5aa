import { useState } from "preact/hooks";
import { send } from "../api/client.ts";
import { refusal } from "../api/error.ts";
import { asError } from "../api/resource.ts";
import type { ExecutionItem } from "../api/types.ts";
import { to } from "../lib/router.ts";
import { actor } from "../lib/settings.ts";
import { plural } from "../lib/text.ts";
import { type Call, CopyCalls, whyNot } from "../parts/Act.tsx";
import { Dialog } from "../parts/Dialog.tsx";
import { kindOf } from "../parts/Status.tsx";

interface Verb {
  name: string;
  path: string;
  danger?: boolean;
  fits: (row: ExecutionItem) => boolean;
  body: (row: ExecutionItem) => object;
}

const isOver = (row: ExecutionItem): boolean => row.endAt !== null;
const isHeld = (row: ExecutionItem): boolean => kindOf(row) === "held";

const verbs: Verb[] = [
  { name: "Suspend", path: "suspend", fits: (row) => !isOver(row) && !isHeld(row), body: () => ({ reason: "suspended with others", options: actor() }) },
  { name: "Resume", path: "resume", fits: isHeld, body: (row) => ({ options: { ...(row.suspension?.id ? { suspensionId: row.suspension.id } : {}), ...actor() } }) },
  { name: "Cancel", path: "cancel", danger: true, fits: (row) => !isOver(row), body: () => ({ reason: "cancelled with others", options: actor() }) },
  { name: "Replay", path: "replay", fits: (row) => row.status === "error", body: () => ({ options: actor() }) },
];

/** Acts on the chosen executions: one call for each, and what came of it. */
export function Bulk({ chosen, clear, changed }: { chosen: ExecutionItem[]; clear: () => void; changed: () => void }) {
  const [verb, setVerb] = useState<Verb | null>(null);
  const [first, second] = chosen;
  return (
    <div class="actions">
      <span>{plural(chosen.length, "execution")} chosen</span>
      {verbs.map((each) => {
        const count = chosen.filter(each.fits).length;
        const why = whyNot() || (count === 0 ? "None of them can be" : "");
        return (
          <button key={each.name} type="button" class={`button ${each.danger ? "danger" : ""}`} disabled={why !== ""} title={why} onClick={() => setVerb(each)}>
            {each.name} {count}
          </button>
        );
      })}
      {first && second && chosen.length === 2 && (
        <a class="button" href={`${to("compare")}?${new URLSearchParams({ a: `${first.workflowId}/${first.executionId}`, b: `${second.workflowId}/${second.executionId}` })}`}>
          Compare
        </a>
      )}
      <button type="button" class="bare" onClick={clear}>
        choose none
      </button>
      {verb && (
        <Confirm
          verb={verb}
          rows={chosen.filter(verb.fits)}
          rest={chosen.filter((row) => !verb.fits(row)).length}
          close={(acted) => {
            setVerb(null);
            if (acted) changed();
          }}
        />
      )}
    </div>
  );
}

function callOf(verb: Verb, row: ExecutionItem): Call {
  return { method: "POST", path: `/workflows/${encodeURIComponent(row.workflowId)}/executions/${encodeURIComponent(row.executionId)}/${verb.path}`, body: verb.body(row) };
}

function Confirm({ verb, rows, rest, close }: { verb: Verb; rows: ExecutionItem[]; rest: number; close: (acted: boolean) => void }) {
  const [done, setDone] = useState(0);
  const [failures, setFailures] = useState<{ id: string; text: string }[]>([]);
  const [isRunning, setRunning] = useState(false);
  const run = async (): Promise<void> => {
    setRunning(true);
    for (const row of rows) {
      const { method, path, body } = callOf(verb, row);
      try {
        const response = await send(method, path, { body, headers: { prefer: "respond-async" } });
        if (!response.ok) throw await refusal(response);
      } catch (error) {
        const { message, executionId } = asError(error);
        // A replay that was started and has failed was started.
        if (executionId === "" || executionId === row.executionId) setFailures((before) => [...before, { id: row.executionId, text: message }]);
      }
      setDone((n) => n + 1);
    }
    setRunning(false);
  };
  const isDone = done === rows.length;
  return (
    <Dialog title={`${verb.name} ${plural(rows.length, "execution")}`} close={() => !isRunning && close(done > 0)}>
      <p>
        {isDone
          ? `${rows.length - failures.length} of ${rows.length} done.`
          : isRunning
            ? `${done} of ${rows.length}…`
            : `One call for each of ${rows.length}.${rest > 0 ? ` For the other ${rest} it makes no sense as they are now.` : ""}`}
      </p>
      {failures.length > 0 && (
        <ul class="faults">
          {failures.map((failure) => (
            <li key={failure.id}>
              <code>{failure.id}</code> <span class="bad">{failure.text}</span>
            </li>
          ))}
        </ul>
      )}
      <div class="actions">
        {!isDone && (
          <button type="button" class={`button ${verb.danger ? "danger" : "primary"}`} disabled={isRunning} onClick={() => void run()}>
            {verb.name} {rows.length}
          </button>
        )}
        <button type="button" class="button" disabled={isRunning} onClick={() => close(done > 0)}>
          Close
        </button>
        <CopyCalls calls={() => rows.map((row) => callOf(verb, row))} />
      </div>
    </Dialog>
  );
}
