import { useMemo } from "preact/hooks";
import { type Data, get } from "../api/client.ts";
import { type Names, useNames } from "../api/names.ts";
import { useResource } from "../api/resource.ts";
import type { Span, SpanNode } from "../api/types.ts";
import type { Row } from "../execution/rows.ts";
import { Waterfall } from "../execution/Waterfall.tsx";
import { useTitle } from "../lib/hooks.ts";
import { nameOf } from "../lib/named.ts";
import { param, setParams, to } from "../lib/router.ts";
import { plural } from "../lib/text.ts";
import { now } from "../lib/time.ts";
import { Fact, Readable } from "../parts/Facts.tsx";
import { Id } from "../parts/Id.tsx";
import { JsonBox } from "../parts/Json.tsx";
import { Loading } from "../parts/Empty.tsx";
import { Problem } from "../parts/Problem.tsx";
import { Stale } from "../parts/Stale.tsx";
import { Duration, Time } from "../parts/Time.tsx";
import { type Line, Lines } from "./Lines.tsx";
import { spanKind, SpanStatus } from "./Traces.tsx";
import "../execution/selection.css";
import "./observe.css";

type LogRecord = Data<"/observability/traces/{traceId}/logs", "get">["logs"][number];

const logsShown = 100;

/** One trace: its spans on one axis, and what the chosen one says. */
export function TraceView({ path }: { path: string[] }) {
  const traceId = path[2] ?? "";
  useTitle("Trace");
  const names = useNames();
  const trace = useResource((signal) => get("/observability/traces/{traceId}", { path: { traceId }, signal }), [traceId]);
  const rows = useMemo(() => (trace.data?.tree ?? []).flatMap((span) => rowsOf(span, 0)), [trace.data]);
  const times = useMemo(() => (trace.data?.spans ?? []).flatMap((span) => [Date.parse(span.startTime), ...(span.endTime ? [Date.parse(span.endTime)] : [])]), [trace.data]);
  if (trace.error && !trace.data) return <Problem error={trace.error} retry={trace.reload} />;
  if (!trace.data) return <Loading what="the trace" />;
  const isOpen = trace.data.spans.some((span) => !span.endTime);
  const root = trace.data.tree[0];
  const chosen = trace.data.spans.find((span) => span.spanId === param("span")) ?? root;
  return (
    <>
      <div class="heading">
        <h1>Trace</h1>
        <Id id={traceId} max={20} copy />
        {root && <Subject span={root} names={names} />}
        <span class="quiet">
          {trace.data.isTruncated ? `the first ${plural(trace.data.spanCount, "span")}: there are more, which the server does not show` : plural(trace.data.spanCount, "span")}
        </span>
        <div class="actions">
          <button type="button" class="button" onClick={trace.reload}>
            Read again
          </button>
        </div>
      </div>
      <Stale of={trace} />
      <div class="tracepanes">
        <Waterfall rows={rows} times={times.sort((a, b) => a - b)} end={isOpen ? now.value : Math.max(...times)} selected={chosen?.spanId ?? ""} select={(span) => setParams({ span })} />
        {chosen && <SpanFacts span={chosen} names={names} />}
      </div>
      <TraceLogs traceId={traceId} names={names} />
    </>
  );
}

function rowsOf(span: SpanNode, depth: number): Row[] {
  const until = span.endTime ? Date.parse(span.endTime) : null;
  const kind = spanKind(span.status, until !== null);
  const from = Date.parse(span.startTime);
  const own: Row = { key: span.spanId, path: span.spanId, label: span.name, depth, kind, from, until, isCall: false, isLeaf: span.children.length === 0, pieces: [{ from, until, as: kind === "failed" ? "failed" : "run", title: span.name }] };
  return [own, ...span.children.flatMap((child) => rowsOf(child, depth + 1))];
}

/** The execution or the agent that a span belongs to, by name. */
function Subject({ span, names }: { span: Span; names: Names }) {
  const { "entity.type": type, "entity.id": entity, "workflow.execution.id": execution } = span.attributes;
  if (typeof entity !== "string") return null;
  const isExecution = type === "workflow" && typeof execution === "string";
  return (
    <span>
      {isExecution && <Id id={execution} href={to("executions", entity, execution)} />} {isExecution && <span class="quiet">of</span>}{" "}
      <a href={to(type === "agent" ? "agents" : "workflows", entity)} title={entity}>
        <bdi>{nameOf(type === "agent" ? names.agents : names.workflows, entity)}</bdi>
      </a>
    </span>
  );
}

function SpanFacts({ span, names }: { span: Span; names: Names }) {
  return (
    <section class="selection" aria-label="Selected span">
      <header>
        <h2>
          <bdi>{span.name}</bdi>
        </h2>
      </header>
      <dl class="facts">
        <Fact name="Status">
          <SpanStatus status={span.status} ended={span.endTime !== undefined} /> <bdi class="bad">{span.status.message}</bdi>
        </Fact>
        <Fact name="Began">
          <Time at={span.startTime} />
        </Fact>
        <Fact name="Took">
          <Duration from={span.startTime} until={span.endTime} />
        </Fact>
        <Fact name={span.attributes["entity.type"] === "agent" ? "Agent" : "Execution"}>
          <Subject span={span} names={names} />
        </Fact>
      </dl>
      <section>
        <h3>Attributes</h3>
        <Readable value={span.attributes} />
      </section>
      {span.events.length > 0 && <JsonBox value={span.events} title="Events" />}
    </section>
  );
}

function TraceLogs({ traceId, names }: { traceId: string; names: Names }) {
  const logs = useResource((signal) => get("/observability/traces/{traceId}/logs", { path: { traceId }, query: { limit: logsShown }, signal }), [traceId]);
  const lines = logs.data?.logs.map(lineOf) ?? [];
  return (
    <section class="tracelogs">
      <h2>Logs</h2>
      {logs.error && <Problem error={logs.error} retry={logs.reload} />}
      {logs.data && lines.length === 0 && <p class="quiet">Nothing was logged in this trace.</p>}
      {logs.data?.nextCursor && <p class="note">The last {logsShown} lines. There are older ones.</p>}
      <Lines lines={lines} names={names} />
    </section>
  );
}

function lineOf(log: LogRecord, index: number): Line {
  const { component, workflowId, executionId, agentId } = log.attributes;
  const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
  return {
    key: index,
    timestamp: log.timestamp,
    level: log.severityText.toLowerCase(),
    text: log.body,
    component: text(component),
    workflowId: text(workflowId),
    executionId: text(executionId),
    agentId: text(agentId),
  };
}
