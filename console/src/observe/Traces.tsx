import { useEffect, useState } from "preact/hooks";
import { get } from "../api/client.ts";
import type { ApiError } from "../api/error.ts";
import { type Names, useNames } from "../api/names.ts";
import { asError } from "../api/resource.ts";
import type { TraceItem } from "../api/types.ts";
import { nameOf } from "../lib/named.ts";
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
        <bdi>{nameOf(row.entityType === "agent" ? names.agents : names.workflows, row.entityId)}</bdi>{" "}
        <span class="quiet">
          {row.entityType} <code>{row.entityId}</code>
        </span>
      </>
    ),
  },
  { name: "Trace", kind: "id-cell", cell: (row) => <Id id={row.traceId} href={to("observe", "traces", row.traceId)} /> },
  { name: "Spans", kind: "narrow", cell: (row) => number(row.spanCount) + (isUncertain(row) ? "+" : "") },
  { name: "Began", kind: "time", cell: (row) => <Time at={row.startTime} /> },
  { name: "Took", kind: "time second", cell: (row) => (row.duration === null ? <Since at={row.startTime} /> : duration(row.duration)) },
];

/**
 * The server counts the spans of the first 1,000 events of a trace, and does not say where it stopped. There are
 * rarely more than five events of a span.
 */
const certainSpans = 200;

function isUncertain(row: TraceItem): boolean {
  return row.spanCount >= certainSpans;
}

/** Traces, newest first. */
export function Traces() {
  const names = useNames();
  const type = param("type") === "agent" ? "agent" : param("type") === "workflow" ? "workflow" : "";
  const entityId = param("of");
  const [rows, setRows] = useState<TraceItem[] | null>(null);
  const [cursor, setCursor] = useState<string | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [round, setRound] = useState(0);

  const read = async (from: string | null): Promise<void> => {
    try {
      const page = await get("/observability/traces", { query: { limit: 100, ...(type ? { entityType: type } : {}), ...(entityId ? { entityId } : {}), ...(from ? { cursor: from } : {}) } });
      setRows((before) => (from ? [...(before ?? []), ...page.traces] : page.traces));
      setCursor(page.nextCursor ?? null);
      setError(null);
    } catch (failure) {
      setError(asError(failure));
    }
  };
  useEffect(() => {
    setRows(null);
    void read(null);
  }, [type, entityId, round]);

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
        <button type="button" class="button clear" onClick={() => setRound(round + 1)}>
          Read again
        </button>
      </div>
      {error && <Problem error={error} retry={() => setRound(round + 1)} />}
      {!rows && !error && <Loading what="traces" />}
      {rows?.length === 0 && (
        <Empty title="No traces">
          <p>Each execution and each generation leaves a trace, with its steps, turns and calls as spans.</p>
        </Empty>
      )}
      {rows && rows.length > 0 && <Table label="Traces" columns={columns(names)} rows={rows} id={(row) => row.traceId} href={(row) => to("observe", "traces", row.traceId)} more={cursor ? () => void read(cursor) : undefined} />}
      {rows?.some(isUncertain) && <p class="note">Spans with a + are at least so many: the list counts the first 1,000 events of a trace. Its page has them.</p>}
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
