import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { to } from "../lib/router.ts";
import { duration } from "../lib/time.ts";
import { Mark } from "../parts/Status.tsx";
import { lasting } from "../parts/Time.tsx";
import { busyOf, type Row } from "./rows.ts";
import { scaleOf } from "./scale.ts";
import "./waterfall.css";

const rowHeight = 26;

/** Attempts, waits and calls on one axis of time. */
export function Waterfall({ rows, times, end, isPast = false, selected, select }: {
  rows: Row[];
  /** Times of the events. */
  times: number[];
  /** Time up to which bars without an end are drawn, in milliseconds since 1970. */
  end: number;
  /** True if it is not drawn up to now. */
  isPast?: boolean;
  selected: string;
  select: (path: string) => void;
}) {
  const [cut, setCut] = useState(true);
  const busy = useMemo(() => busyOf(rows), [rows]);
  const short = useMemo(() => scaleOf([...times, end], true, busy), [times, end, busy]);
  const canCut = short.cuts.length > 0;
  const scale = useMemo(() => (cut || !canCut ? short : scaleOf([...times, end], false)), [short, cut, canCut]);
  const port = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState({ start: 0, end: 60 });

  useEffect(() => {
    const element = port.current;
    if (!element) return;
    const measure = (): void => {
      const start = Math.max(0, Math.floor(element.scrollTop / rowHeight) - 10);
      setRange((before) => (before.start === start ? before : { start, end: start + Math.ceil(element.clientHeight / rowHeight) + 20 }));
    };
    element.addEventListener("scroll", measure, { passive: true });
    return () => element.removeEventListener("scroll", measure);
  }, []);

  const first = times[0] ?? end;
  const shown = rows.slice(range.start, range.end);
  return (
    <div class="waterfall">
      <div class="axis small quiet">
        <span>0</span>
        {canCut && (
          <label>
            <input type="checkbox" checked={cut} onChange={(event) => setCut(event.currentTarget.checked)} /> long waits drawn short
          </label>
        )}
        <span>{duration(end - first)}</span>
      </div>
      <div class="port" ref={port} tabIndex={0} role="group" aria-label="Waterfall of steps">
        <div style={{ height: `${rows.length * rowHeight}px`, position: "relative" }}>
          <div class="cuts" aria-hidden="true">
            {scale.cuts.map((gap) => (
              <span key={gap.from} style={{ left: percent(scale.at(gap.from)), width: percent(scale.at(gap.until) - scale.at(gap.from)) }} title={`${duration(gap.until - gap.from)} without events`} />
            ))}
          </div>
          {shown.map((row, index) => (
            <RowLine key={row.key} row={row} top={(range.start + index) * rowHeight} at={scale.at} end={end} isPast={isPast} isSelected={!row.isCall && row.path === selected} select={select} />
          ))}
        </div>
      </div>
    </div>
  );
}

function percent(part: number): string {
  return `${(part * 100).toFixed(3)}%`;
}

interface LineProps {
  row: Row;
  top: number;
  at: (time: number) => number;
  end: number;
  isPast: boolean;
  isSelected: boolean;
  select: (path: string) => void;
}

function RowLine({ row, top, at, end, isPast, isSelected, select }: LineProps) {
  const length = row.until === null && !isPast ? `${lasting(end - row.from)}…` : duration((row.until ?? end) - row.from);
  return (
    <div class={`line ${row.kind} ${isSelected ? "selected" : ""} ${row.isCall ? "call" : row.isLeaf ? "" : "holds"}`} style={{ top: `${top}px` }}>
      <button type="button" class="label" onClick={() => select(row.path)} title={row.path} style={{ paddingLeft: `${4 + row.depth * 12}px` }} aria-pressed={isSelected}>
        <Mark kind={row.kind} />
        <bdi>{row.label}</bdi>
      </button>
      <div class="track" onClick={() => select(row.path)}>
        {row.pieces.map((piece, index) => {
          const [left, right] = [at(piece.from), at(piece.until ?? end)];
          return <span key={index} class={`piece ${piece.as} ${piece.until === null ? "open" : ""}`} title={piece.title} style={{ left: percent(left), width: percent(Math.max(0, right - left)) }} />;
        })}
      </div>
      <span class="length small number">
        {row.child ? <a href={to("executions", row.child.workflowId, row.child.executionId)}>open</a> : length}
      </span>
    </div>
  );
}
