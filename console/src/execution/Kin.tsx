import { get } from "../api/client.ts";
import { useWorkflows } from "../api/names.ts";
import { useResource } from "../api/resource.ts";
import type { ExecutionState } from "../api/types.ts";
import { findExecution } from "../executions/find.ts";
import { nameOf } from "../lib/named.ts";
import { to } from "../lib/router.ts";
import { Id } from "../parts/Id.tsx";
import { kindOf, Status } from "../parts/Status.tsx";
import { Time } from "../parts/Time.tsx";
import type { Ids } from "./Value.tsx";

/** Replays that are named; a link leads to all. */
const replaysShown = 3;

/** The executions that this one belongs to: what started it, what it undoes, what it replays, and what replays it. `version` changes when it may have others. */
export function Kin({ ids, state, version }: { ids: Ids; state: ExecutionState | undefined; version: unknown }) {
  return (
    <>
      {state?.parentExecutionId && <Parent id={state.parentExecutionId} />}
      {state?.reversalOf && <Reversed ids={ids} id={state.reversalOf} />}
      {state?.replayedFrom && <Original ids={ids} of={state.replayedFrom} />}
      <Replays ids={ids} version={version} />
    </>
  );
}

/** The execution whose step started this one. Records have its id alone, so its workflow is looked for. */
function Parent({ id }: { id: string }) {
  const search = useResource((signal) => findExecution(id, signal), [id]);
  const workflows = useWorkflows();
  const parent = search.data?.execution;
  return (
    <p class="inline-parts">
      <span class="quiet">Started by</span> <Id id={id} href={parent ? to("executions", parent.workflowId, id) : to("executions", id)} max={24} />
      {parent && (
        <>
          {" "}
          <span class="quiet">of</span> <bdi>{nameOf(workflows, parent.workflowId)}</bdi> <Status kind={kindOf(parent)} />
        </>
      )}
      {search.data && !parent && <span class="quiet">, which is no longer stored, or not for you to see</span>}
    </p>
  );
}

/** The completed execution whose steps this one compensates. */
function Reversed({ ids, id }: { ids: Ids; id: string }) {
  return (
    <p class="inline-parts">
      <span class="quiet">Reversal of</span> <Id id={id} href={to("executions", ids.id, id)} max={24} />
      <span class="quiet">, whose steps it compensates</span>
    </p>
  );
}

/** The execution that this one replays. */
function Original({ ids, of }: { ids: Ids; of: NonNullable<ExecutionState["replayedFrom"]> }) {
  return (
    <p class="inline-parts">
      <span class="quiet">Replay of</span> <Id id={of.executionId} href={to("executions", ids.id, of.executionId)} max={17} /> <span class="quiet">from</span> <bdi>{of.stepId}</bdi>
      <a href={`${to("compare")}?${new URLSearchParams({ a: `${ids.id}/${of.executionId}`, b: `${ids.id}/${ids.executionId}` })}`}>Compare with its original</a>
    </p>
  );
}

/** The newest replays of this execution. */
function Replays({ ids, version }: { ids: Ids; version: unknown }) {
  const read = useResource((signal) => get("/workflows/{id}/executions", { path: { id: ids.id }, query: { replayOf: ids.executionId, limit: replaysShown }, signal }), [ids], version);
  const replays = read.data?.executions ?? [];
  if (replays.length === 0) return null;
  return (
    <p class="inline-parts">
      <span class="quiet">Replayed as</span>{" "}
      {replays.map((item) => (
        <span key={item.executionId} class="one">
          <Id id={item.executionId} href={to("executions", item.workflowId, item.executionId)} max={17} /> <Status kind={kindOf(item)} /> <span class="quiet small">{<Time at={item.startAt} />}</span>
        </span>
      ))}
      {read.data?.nextCursor && <a href={`${to("executions")}?${new URLSearchParams({ workflow: ids.id, replayOf: ids.executionId })}`}>and older ones</a>}
    </p>
  );
}
