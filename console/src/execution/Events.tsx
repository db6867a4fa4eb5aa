import { useEffect, useRef, useState } from "preact/hooks";
import { isNarrow } from "../lib/narrow.ts";
import { number } from "../lib/text.ts";
import { Mark } from "../parts/Status.tsx";
import type { Numbered } from "./fold.ts";
import { eventDetail, eventWord, isFailure } from "./words.ts";
import "./events.css";

/** Heights of a row; the style has the same. */
function heightOfRow(): number {
  return isNarrow() ? 48 : 28;
}

interface EventsProps {
  events: readonly Numbered[];
  /** Number of all events while they are being read; null once all are. */
  total: number | null;
  /** The number that is looked at, or null for the newest. */
  at: number | null;
  goTo: (seq: number, path: string) => void;
  onlyFailures: boolean;
  setOnlyFailures: (on: boolean) => void;
}

/** The record: every event with its number. */
export function Events({ events, total, at, goTo, onlyFailures, setOnlyFailures }: EventsProps) {
  const port = useRef<HTMLDivElement>(null);
  const [start, setStart] = useState(0);
  const [rowHeight, setRowHeight] = useState(heightOfRow());
  const failures = events.filter(({ event }) => isFailure(event));
  const list = onlyFailures ? failures : events;
  const first = Date.parse(events[0]?.event.timestamp ?? "");

  useEffect(() => {
    const element = port.current;
    if (!element) return;
    const measure = (): void => {
      setRowHeight(heightOfRow());
      setStart(Math.max(0, Math.floor(element.scrollTop / heightOfRow()) - 8));
    };
    element.addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      element.removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, []);

  // The event that is looked at stays in view; the newest one as well, while nothing else is.
  const target = at === null ? list.length - 1 : list.findIndex(({ seq }) => seq === at);
  useEffect(() => {
    const element = port.current;
    if (!element || target < 0) return;
    const top = target * rowHeight;
    if (top < element.scrollTop || top + rowHeight > element.scrollTop + element.clientHeight) element.scrollTop = top - element.clientHeight / 2;
  }, [target, onlyFailures]);

  const shown = list.slice(start, start + 40);
  return (
    <section class="events" aria-label="Events">
      <div class="note">
        <h2>Events</h2>
        <span>{total === null ? `${number(events.length)} recorded` : `${number(events.length)} of ${number(total)} read so far`}</span>
        <label>
          <input type="checkbox" checked={onlyFailures} onChange={(event) => setOnlyFailures(event.currentTarget.checked)} /> failures only ({number(failures.length)})
        </label>
      </div>
      <div class="port" ref={port} tabIndex={0} role="group" aria-label="List of events">
        <div style={{ height: `${list.length * rowHeight}px`, position: "relative" }}>
          {shown.map(({ seq, event }, index) => {
            const { text, kind } = eventWord(event);
            const path = event.path ?? event.from ?? "";
            return (
              <button
                key={seq}
                type="button"
                class={`event ${kind} ${at === seq ? "selected" : ""} ${at !== null && seq > at ? "later" : ""}`}
                style={{ top: `${(start + index) * rowHeight}px` }}
                aria-pressed={at === seq}
                onClick={() => goTo(seq, path)}
              >
                <span class="seq quiet">{seq}</span>
                <span class="offset quiet" title={event.timestamp}>
                  {offset(Date.parse(event.timestamp) - first)}
                </span>
                <Mark kind={kind} />
                <span class="what">{text}</span>
                <bdi class="where">{path}</bdi>
                <bdi class={`detail ${isFailure(event) ? "bad" : "quiet"}`}>{eventDetail(event)}</bdi>
              </button>
            );
          })}
        </div>
      </div>
    </section>
  );
}

function offset(ms: number): string {
  if (ms < 60_000) return `+${(ms / 1000).toFixed(3)} s`;
  const seconds = Math.floor(ms / 1000);
  const clock = [Math.floor(seconds / 60) % 60, seconds % 60].map((part) => String(part).padStart(2, "0")).join(":");
  return `+${Math.floor(seconds / 3600)}:${clock}`;
}
