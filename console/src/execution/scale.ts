/** A time axis on which long times without events are drawn short, and say so. */
export interface Scale {
  /** Place of a time, from 0 to 1. */
  at: (time: number) => number;
  /** The times that are drawn shorter than they are. */
  cuts: { from: number; until: number }[];
}

/** A gap longer than this, and than this part of the whole, is cut to this part of the drawing. */
const longMs = 10_000;
const longGap = 0.3;
const cutWidth = 0.1;

/** A time in which something runs; without an end it still does. */
export interface Busy {
  from: number;
  until: number | null;
}

/** An axis for the times of an execution. With `cut`, long gaps in which nothing runs are drawn short. */
export function scaleOf(times: readonly number[], cut: boolean, busy: readonly Busy[] = []): Scale {
  const sorted = [...new Set(times)].sort((a, b) => a - b);
  const first = sorted[0] ?? 0;
  const last = sorted.at(-1) ?? first;
  const whole = Math.max(1, last - first);
  const gaps = sorted.slice(1).map((time, index) => ({ from: sorted[index] ?? first, until: time }));
  const cuts = cut && gaps.length > 1 ? gaps.filter((gap) => gap.until - gap.from > Math.max(longMs, whole * longGap) && !busy.some((each) => each.from < gap.until && (each.until ?? last) > gap.from)) : [];
  const short = cuts.reduce((sum, gap) => sum + gap.until - gap.from, 0);
  const rest = whole - short;
  if (cuts.length === 0 || rest <= 0) return { at: (time) => clamp((time - first) / whole), cuts: [] };
  const free = 1 - cuts.length * cutWidth;
  const at = (time: number): number => {
    let place = 0;
    let from = first;
    for (const gap of cuts) {
      if (time <= gap.from) break;
      place += ((gap.from - from) / rest) * free;
      place += (Math.min(1, (time - gap.from) / (gap.until - gap.from))) * cutWidth;
      from = gap.until;
    }
    return clamp(place + (Math.max(0, time - from) / rest) * free);
  };
  return { at, cuts };
}

function clamp(value: number): number {
  return Math.min(1, Math.max(0, value));
}
