import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api/client.ts";
import type { ApiError } from "../api/error.ts";
import { type Names, useNames } from "../api/names.ts";
import { asError } from "../api/resource.ts";
import type { TraceItem } from "../api/types.ts";
import { nameOf } from "../lib/named.ts";
import { isNarrow } from "../lib/narrow.ts";
import { param, setParams, to } from "../lib/router.ts";
import { number } from "../lib/text.ts";
import { duration } from "../lib/time.ts";
import { Empty, Loading } from "../parts/Empty.tsx";
import { Id } from "../parts/Id.tsx";
import { Problem } from "../parts/Problem.tsx";
import { type Kind, Status } from "../parts/Status.tsx";
import { type Column, Table } from "../parts/Table.tsx";
import { Since, Time } from "../parts/Time.tsx";

/** A cancelled span counts as an error in OpenTelemetry; people tell them apart. */
export function spanKind({ code, message }: { code: string; message?: string | undefined }, ended: boolean): Kind {
  if (message === "cancelled") return "cancelled";
  return code === "ERROR" ? "failed" : ended ? "completed" : "running";
}

/** A span that has not ended may be running or wait for something: it does not say which. */
export function SpanStatus({ status, ended }: { status: TraceItem["status"]; ended: boolean }) {
  return <Status kind={spanKind(status, ended)} {...(ended ? {} : { text: "open" })} />;
}

const columns = (names: Names): Column<TraceItem>[] => [
  { name: "Status", kind: "status-cell", cell: (row) => <SpanStatus status={row.status} ended={row.endTime !== null} /> },
  {
    name: "Workflow or agent",
    kind: "wide",
    cell: (row) => (
      <>
        {isNarrow() && (
          <span>
            <Id id={row.traceId} href={to("observe", "traces", row.traceId)} max={12} />{" "}
          </span>
        )}
        <bdi>{nameOf(row.entityType === "agent" ? names.agents : names.workflows, row.entityId)}</bdi>{" "}
        <span class="quiet">
          {row.entityType} <code>{row.entityId}</code>
        </span>
      </>
    ),
  },
  { name: "Trace", kind: "id-cell", cell: (row) => <Id id={row.traceId} href={to("observe", "traces", row.traceId)} /> },
  { name: "Spans", kind: "narrow", cell: (row) => number(row.spanCount) + (row.isTruncated ? "+" : "") },
  { name: "Began", kind: "time", cell: (row) => <Time at={row.startTime} /> },
  { name: "Took", kind: "time second", cell: (row) => (row.duration === null ? <Since at={row.startTime} /> : duration(row.duration)) },
];

/** Traces of one filter, as far as they were read. */
interface Read {
  key: string;
  rows: TraceItem[] | null;
  cursor: string | null;
  error: ApiError | null;
}

/** Pages of traces. Answers for another filter are left out, and each page is asked for once. */
function useTraces(type: "" | "agent" | "workflow", entityId: string): Read & { more: () => void; reload: () => void } {
  const key = `${type}/${entityId}`;
  const none: Read = { key, rows: null, cursor: null, error: null };
  const [state, setState] = useState(none);
  const [round, setRound] = useState(0);
  const isReading = useRef(false);
  const page = (cursor: string | null, signal?: AbortSignal) => get("/observability/traces", { query: { limit: 100, ...(type ? { entityType: type } : {}), ...(entityId ? { entityId } : {}), ...(cursor ? { cursor } : {}) }, ...(signal ? { signal } : {}) });

  useEffect(() => {
    const controller = new AbortController();
    setState((before) => (before.key === key ? before : none));
    page(null, controller.signal).then(
      ({ traces, nextCursor }) => {
        if (!controller.signal.aborted) setState({ key, rows: traces, cursor: nextCursor ?? null, error: null });
      },
      (failure: unknown) => {
        if (!controller.signal.aborted) setState((before) => ({ ...before, error: asError(failure) }));
      },
    );
    return () => controller.abort();
  }, [key, round]);

  const more = (): void => {
    const asked = state.cursor;
    // After a failure somebody asks again.
    if (!asked || state.error || isReading.current) return;
    isReading.current = true;
    const put = (change: (before: Read) => Read): void => setState((before) => (before.key === key && before.cursor === asked ? change(before) : before));
    page(asked)
      .then(({ traces, nextCursor }) => put((before) => ({ ...before, rows: [...(before.rows ?? []), ...traces], cursor: nextCursor ?? null })))
      .catch((failure: unknown) => put((before) => ({ ...before, error: asError(failure) })))
      .finally(() => (isReading.current = false));
  };
  return { ...(state.key === key ? state : none), more, reload: () => setRound((n) => n + 1) };
}

/** Traces, newest first. */
export function Traces() {
  const names = useNames();
  const type = param("type") === "agent" ? "agent" : param("type") === "workflow" ? "workflow" : "";
  const entityId = param("of");
  const { rows, cursor, error, more, reload } = useTraces(type, entityId);

  return (
    <>
      <div class="filters">
        <label>
          Of
          <select
            value={`${type}/${entityId}`}
            onChange={(event) => {
              const [chosen = "", ...id] = event.currentTarget.value.split("/");
              setParams({ type: chosen, of: id.join("/") });
            }}
          >
            <option value="/">workflows and agents</option>
            <option value="workflow/">workflows</option>
            <option value="agent/">agents</option>
            <Each type="workflow" label="One workflow" list={names.workflows} />
            <Each type="agent" label="One agent" list={names.agents} />
          </select>
        </label>
        <button type="button" class="button clear" onClick={reload}>
          Read again
        </button>
      </div>
      {error && <Problem error={error} retry={reload} />}
      {!rows && !error && <Loading what="traces" />}
      {rows?.length === 0 && (
        <Empty title="No traces">
          <p>Each execution and each generation leaves a trace, with its steps, turns and calls as spans.</p>
        </Empty>
      )}
      {rows && rows.length > 0 && <Table label="Traces" columns={columns(names)} rows={rows} id={(row) => row.traceId} href={(row) => to("observe", "traces", row.traceId)} more={cursor ? more : undefined} />}
      {rows?.some((row) => row.isTruncated) && <p class="note">Spans with a + are at least so many: the list counts the first of a long trace. Its page has more.</p>}
    </>
  );
}

function Each({ type, label, list }: { type: string; label: string; list: Names["agents"] }) {
  return (
    <optgroup label={label}>
      {list.map(({ id, name }) => (
        <option key={id} value={`${type}/${id}`}>
          {name}
        </option>
      ))}
    </optgroup>
  );
}
