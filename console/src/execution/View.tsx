import { useEffect, useMemo, useState } from "preact/hooks";
import { get } from "../api/client.ts";
import { asError, useResource } from "../api/resource.ts";
import type { WorkflowStep } from "../api/types.ts";
import { isSleep, type Node, nodeAt, nodesOf, undonePath, undoOf } from "../graph/definition.ts";
import { Graph } from "../graph/Graph.tsx";
import { useTitle } from "../lib/hooks.ts";
import { param, setParams, to } from "../lib/router.ts";
import { useSettled } from "../lib/settled.ts";
import { number, plural } from "../lib/text.ts";
import { absolute, now } from "../lib/time.ts";
import { Loading } from "../parts/Empty.tsx";
import { Id } from "../parts/Id.tsx";
import { Problem } from "../parts/Problem.tsx";
import { Stale } from "../parts/Stale.tsx";
import { kindOf, Status } from "../parts/Status.tsx";
import { Actions } from "./Actions.tsx";
import { Events } from "./Events.tsx";
import { fold, isOpen } from "./fold.ts";
import { Kin } from "./Kin.tsx";
import { live } from "./live.ts";
import { childrenOf, finder, lookOf, placesOf, telling } from "./looks.ts";
import { callsOf, rowsOf } from "./rows.ts";
import { Selection } from "./Selection.tsx";
import { Sentence } from "./Sentence.tsx";
import { Slider } from "./Slider.tsx";
import { Waterfall } from "./Waterfall.tsx";
import { asleep } from "./words.ts";
import "./execution.css";

/** One execution: a fold of its events, live or as it was at any of them. */
export function ExecutionView({ path }: { path: string[] }) {
  const [, workflowId = "", executionId = ""] = path;
  useTitle(`${executionId} · ${workflowId}`);
  const following = useMemo(() => live(workflowId, executionId), [workflowId, executionId]);
  useEffect(() => following.stop, [following]);
  const events = following.events.value;
  const last = events.at(-1)?.seq ?? 0;
  const settled = useSettled(last, last > manyEvents ? 1500 : 300);
  const [seen, setSeen] = useState(0);
  const settledLong = useSettled(last, traceMs);

  const key = [workflowId, executionId];
  // Read again when something happened behind what was read, and when a lost connection is back.
  const version = `${seen} ${following.opened.value}`;
  const ids = { id: workflowId, executionId };
  const state = useResource((signal) => get("/workflows/{id}/executions/{executionId}/state", { path: ids, query: { values: false }, signal }), key, version);
  const covered = state.data?.lastSequence ?? (state.error ? 0 : Number.POSITIVE_INFINITY);
  useEffect(() => {
    if (settled > Math.max(covered, seen)) setSeen(settled);
  }, [settled, covered]);
  // Behind the state, so that it is never the older one: it does not say which events it knows.
  const isRead = covered !== Number.POSITIVE_INFINITY;
  const outlook = useResource(async (signal) => (isRead ? get("/workflows/{id}/executions/{executionId}/why", { path: ids, signal }) : undefined), key, `${covered} ${following.opened.value}`);
  // The version that it began with; the one of now, where that is not stored any more.
  const hash = state.data?.definitionHash;
  const definition = useResource(async (signal) => {
    const path = { id: workflowId };
    if (!hash) return undefined;
    return get("/workflows/{id}", { path, query: { definitionHash: hash }, signal }).catch((error: unknown) => {
      if (asError(error).status !== 404) throw error;
      return get("/workflows/{id}", { path, signal });
    });
  }, [workflowId, hash ?? ""]);

  const at = Number(param("at")) || null;
  const isPast = at !== null && at < last;
  const model = useMemo(() => fold(events, isPast ? at : undefined), [events, isPast, at]);
  const nodes = useMemo(() => nodesOf(definition.data?.steps ?? noSteps), [definition.data]);
  const { places, unknown } = useMemo(() => placesOf(model, nodes), [model, nodes]);

  const hasCalls = (definition.data?.steps ?? []).some(calls);
  const traceId = hasCalls ? state.data?.traceId : undefined;
  // A trace of many children has megabytes: it is read rarely while events come, and once when they have ended.
  const traceVersion = `${state.data?.endAt ?? settledLong} ${following.opened.value}`;
  const trace = useResource(async (signal) => (traceId ? get("/observability/traces/{traceId}", { path: { traceId }, signal }) : undefined), [traceId ?? ""], traceVersion);
  const made = useMemo(() => (trace.data && !isPast ? callsOf(trace.data.tree, executionId) : new Map<string, never[]>()), [trace.data, executionId, isPast]);
  // Of a cut trace the state still knows what steps started.
  const isCut = trace.data?.isTruncated ?? false;
  const children = useMemo(() => (isCut && !isPast && state.data ? childrenOf(state.data, nodes) : new Map<string, never>()), [isCut, isPast, state.data, nodes]);

  const open = isOpen(model.kind);
  const wake = asleep(outlook.data);
  // While a long record is being read, the state knows better what is.
  const isBehind = state.data !== undefined && state.data.lastSequence - last > behindMin;
  const isEarlier = isPast || isBehind;
  const clock = isEarlier ? Date.parse(model.at) : open ? now.value : Date.parse(model.until ?? model.at);
  const rows = useMemo(() => {
    const nodeAt = finder(nodes);
    return rowsOf(model, made, (each) => isSleep(nodeAt(each)), children);
  }, [model, made, nodes, children]);
  const times = useMemo(() => events.filter(({ seq }) => seq <= model.last).map(({ event }) => Date.parse(event.timestamp)), [events, model]);

  const selected = param("step");
  const node = selected ? (nodeAt(nodes, selected) ?? find(nodes, selected)) : undefined;
  const place = node && (undonePath(selected) === null ? node.key : undoOf(node.key));
  const step = model.steps.get(selected) ?? (place ? telling(places.get(place) ?? []) : undefined);
  const order = (definition.data?.steps ?? []).map((each) => each.id);
  const begins = order.indexOf(state.data?.replayedFrom?.stepId ?? "");
  const isKept = node !== undefined && (state.data?.reversalOf !== undefined || begins > order.indexOf(node.key.split("/")[0] ?? ""));
  const select = (which: string): void => setParams({ step: which });

  if (state.error && events.length === 0) return <Problem error={state.error} retry={state.reload} hrefOf={(meant) => to("executions", meant, executionId)} />;
  if (events.length === 0 && !state.data) return <Loading what="the execution" />;
  return (
    <div class="execution">
      <div class="heading">
        <h1>
          <Id id={executionId} max={24} copy />
        </h1>
        {!isPast && open && wake ? <Status kind="sleeping" text={wake.until ? `sleeping until ${absolute(Date.parse(wake.until), now.value)}` : "sleeping"} /> : <Status kind={isBehind && !isPast && state.data ? kindOf(state.data) : model.kind} />}
        <a href={to("workflows", workflowId)}>{definition.data?.name ?? workflowId}</a>
        <Actions workflowId={workflowId} executionId={executionId} state={state.data} outlook={outlook.data} definition={definition.data} stepId={selected.split(/[/[]/)[0] ?? ""} isPast={isPast} />
      </div>
      <Sentence outlook={outlook.data} state={state.data} model={model} past={isPast} />
      <Kin ids={ids} state={state.data} version={`${state.data?.endAt} ${following.opened.value}`} />
      <Stale of={state} />
      {outlook.error && outlook.error.status > 0 && <Problem error={outlook.error} retry={outlook.reload} />}
      {definition.error && <p class="note">Without its graph: {definition.error.message}.</p>}
      {unknown > 0 && nodes.length > 0 && (
        <p class="note">Its version is not stored, and the workflow has changed since: {plural(unknown, "step")} of this execution {unknown === 1 ? "is" : "are"} not in the graph, which is that of now.</p>
      )}
      {isCut && <p class="note">Its trace is cut after {number(trace.data?.spanCount ?? 0)} spans: what agents and tools did behind them is left out, and executions that steps started have no times. Steps and events are complete.</p>}
      <div class="panes">
        {nodes.length > 0 && <Graph nodes={nodes} look={(each) => lookOf(places.get(each), find(nodes, each), clock, isEarlier)} selected={node?.key} select={(each) => select(telling(places.get(each) ?? [])?.path ?? each)} label="Graph of the workflow" />}
        <Waterfall rows={rows} times={times} end={clock} isPast={isEarlier} selected={step?.path ?? ""} select={select} />
        <Selection
          ids={ids}
          model={model}
          state={state.data}
          outlook={outlook.data}
          node={node}
          declared={node && declared(definition.data?.steps ?? [], node.key)}
          step={step}
          rounds={node ? (places.get(node.key) ?? []) : []}
          progress={step && following.progress.value.get(step.path)}
          calls={step ? (made.get(step.path) ?? []) : []}
          isPast={isEarlier}
          isKept={isKept}
          select={select}
        />
      </div>
      <Slider events={events} at={isPast ? at : null} goTo={(seq) => setParams({ at: seq === null ? "" : String(seq) })} />
      <Events
        events={events}
        total={isBehind ? (state.data?.lastSequence ?? 0) : null}
        at={isPast ? at : null}
        goTo={(seq, stepPath) => setParams({ at: seq === last ? "" : String(seq), step: stepPath })}
        onlyFailures={param("failures") === "1"}
        setOnlyFailures={(on) => setParams({ failures: on ? "1" : "" })}
      />
    </div>
  );
}

/** With more events than this a state is large: it is read less often while they come. */
const manyEvents = 1000;

/** Fewer events than these are on their way all the time. */
const behindMin = 100;

/** Time without events before the trace is read again; twice as long while they come. */
const traceMs = 3000;

const noSteps: readonly WorkflowStep[] = [];

function calls(step: WorkflowStep): boolean {
  return step.agentId !== undefined || step.workflowId !== undefined || (step.steps ?? []).some(calls);
}

function find(nodes: readonly Node[], key: string): Node | undefined {
  for (const node of nodes) {
    if (node.key === key) return node;
    const found = key.startsWith(`${node.key}/`) ? find(node.children, key) : undefined;
    if (found) return found;
  }
  return undefined;
}

function declared(steps: readonly WorkflowStep[], key: string): WorkflowStep | undefined {
  const [first, ...rest] = key.split("/");
  const step = steps.find((each) => each.id === first);
  return rest.length === 0 || !step ? step : declared(step.steps ?? [], rest.join("/"));
}
