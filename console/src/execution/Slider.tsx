import { useKeys } from "../lib/hooks.ts";
import { absolute, now } from "../lib/time.ts";
import { number } from "../lib/text.ts";
import type { Numbered } from "./fold.ts";

/** Goes through the numbers of the events: everything above shows the execution as it was then. */
export function Slider({ events, at, goTo }: { events: readonly Numbered[]; at: number | null; goTo: (seq: number | null) => void }) {
  const last = events.at(-1)?.seq ?? 0;
  const first = events[0]?.seq ?? 0;
  const current = at ?? last;
  const step = (by: number): void => {
    const next = Math.min(last, Math.max(first, current + by));
    goTo(next === last ? null : next);
  };
  useKeys((event) => {
    if ((event.target as HTMLElement).closest('[role="tablist"]')) return;
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  });
  if (events.length < 2) return null;
  const time = events.find(({ seq }) => seq === current)?.event.timestamp;
  return (
    <div class={`slider ${at === null ? "" : "past"}`}>
      <button type="button" class="button" onClick={() => step(-1)} disabled={current <= first} aria-label="One event back">
        ←
      </button>
      <input
        type="range"
        min={first}
        max={last}
        value={current}
        aria-label="Event"
        aria-valuetext={`Event ${current} of ${last}`}
        onInput={(event) => {
          const value = Number(event.currentTarget.value);
          goTo(value === last ? null : value);
        }}
      />
      <button type="button" class="button" onClick={() => step(1)} disabled={current >= last} aria-label="One event forward">
        →
      </button>
      <span class="number">
        {at === null ? `event ${number(last)}, the newest` : `as it was at event ${number(current)} of ${number(last)}`}
        {time && <span class="quiet"> · {absolute(Date.parse(time), now.value)}</span>}
      </span>
      {at !== null && (
        <button type="button" class="button" onClick={() => goTo(null)}>
          Newest
        </button>
      )}
    </div>
  );
}
