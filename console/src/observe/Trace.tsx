import { useMemo } from "preact/hooks";
import { get } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import type { Span, SpanNode } from "../api/types.ts";
import type { Row } from "../execution/rows.ts";
import { Waterfall } from "../execution/Waterfall.tsx";
import { useTitle } from "../lib/hooks.ts";
import { param, setParams, to } from "../lib/router.ts";
import { plural } from "../lib/text.ts";
import { now } from "../lib/time.ts";
import { Fact, Readable } from "../parts/Facts.tsx";
import { Id } from "../parts/Id.tsx";
import { JsonBox } from "../parts/Json.tsx";
import { Loading } from "../parts/Empty.tsx";
import { Problem } from "../parts/Problem.tsx";
import { Stale } from "../parts/Stale.tsx";
import { Status } from "../parts/Status.tsx";
import { Duration, Time } from "../parts/Time.tsx";
import { Lines } from "./Lines.tsx";
import { spanKind } from "./Traces.tsx";
import "../execution/selection.css";
import "./observe.css";

/** One trace: its spans on one axis, and what the chosen one says. */
export function TraceView({ path }: { path: string[] }) {
  const traceId = path[2] ?? "";
  useTitle("Trace");
  const trace = useResource((signal) => get("/observability/traces/{traceId}", { path: { traceId }, signal }), [traceId]);
  const rows = useMemo(() => (trace.data?.tree ?? []).flatMap((span) => rowsOf(span, 0)), [trace.data]);
  const times = useMemo(() => (trace.data?.spans ?? []).flatMap((span) => [Date.parse(span.startTime), ...(span.endTime ? [Date.parse(span.endTime)] : [])]), [trace.data]);
  if (trace.error && !trace.data) return <Problem error={trace.error} retry={trace.reload} />;
  if (!trace.data) return <Loading what="the trace" />;
  const isOpen = trace.data.spans.some((span) => !span.endTime);
  const chosen = trace.data.spans.find((span) => span.spanId === param("span"));
  return (
    <>
      <div class="heading">
        <h1>Trace</h1>
        <Id id={traceId} max={40} copy />
        <span class="quiet">
          {plural(trace.data.spanCount, "span")}
          {trace.data.isTruncated && ", not all of them shown"}
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
        {chosen ? <SpanFacts span={chosen} /> : <p class="quiet">Choose a span to see its attributes.</p>}
      </div>
      <TraceLogs traceId={traceId} />
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

function SpanFacts({ span }: { span: Span }) {
  const { "entity.type": type, "entity.id": entity, "workflow.execution.id": execution } = span.attributes;
  return (
    <section class="selection" aria-label="Selected span">
      <header>
        <h2>
          <bdi>{span.name}</bdi>
        </h2>
      </header>
      <dl class="facts">
        <Fact name="Status">
          <Status kind={spanKind(span.status, span.endTime !== undefined)} /> <bdi class="bad">{span.status.message}</bdi>
        </Fact>
        <Fact name="Began">
          <Time at={span.startTime} />
        </Fact>
        <Fact name="Took">
          <Duration from={span.startTime} until={span.endTime} />
        </Fact>
        {type === "workflow" && typeof entity === "string" && typeof execution === "string" && (
          <Fact name="Execution">
            <Id id={execution} href={to("executions", entity, execution)} max={24} />
          </Fact>
        )}
      </dl>
      <section>
        <h3>Attributes</h3>
        <Readable value={span.attributes} />
      </section>
      {span.events.length > 0 && <JsonBox value={span.events} title="Events" />}
    </section>
  );
}

function TraceLogs({ traceId }: { traceId: string }) {
  const logs = useResource((signal) => get("/observability/traces/{traceId}/logs", { path: { traceId }, query: { limit: 100 }, signal }), [traceId]);
  const lines = logs.data?.logs.map((log) => ({ timestamp: log.timestamp, level: log.severityText.toLowerCase(), text: String(log.body) })) ?? [];
  return (
    <section>
      <div class="note">
        <h2>Logs of it</h2>
      </div>
      {logs.error && <Problem error={logs.error} retry={logs.reload} />}
      {logs.data && lines.length === 0 && <p class="quiet">Nothing was logged in it.</p>}
      <Lines lines={lines} />
    </section>
  );
}
