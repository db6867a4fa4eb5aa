import { signal } from "@preact/signals";

/** The clock of the page, once a second while it is seen. */
export const now = signal(Date.now());

export function startClock(): void {
  setInterval(() => {
    if (!document.hidden) now.value = Date.now();
  }, 1000);
}

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** A length of time, with two units at most: `350 ms`, `1.25 s`, `2 min 5 s`, `3 h 20 min`, `4 d 2 h`. */
export function duration(ms: number): string {
  if (ms < 0) return "0 ms";
  // Times are recorded in milliseconds.
  if (ms < 1) return "< 1 ms";
  if (ms < second) return `${Math.round(ms)} ms`;
  if (ms < 10 * second) return `${(ms / second).toFixed(2)} s`;
  if (ms < minute) return `${(ms / second).toFixed(1)} s`;
  const [big, small, names] =
    ms < hour ? [minute, second, ["min", "s"]] : ms < day ? [hour, minute, ["h", "min"]] : [day, hour, ["d", "h"]];
  const whole = Math.floor(ms / big);
  const rest = Math.floor((ms % big) / small);
  return rest === 0 ? `${whole} ${names[0]}` : `${whole} ${names[0]} ${rest} ${names[1]}`;
}

/** One unit: `now`, `5 s`, `3 min`, `2 h`, `12 d`. */
export function brief(ms: number): string {
  const length = Math.abs(ms);
  if (length < second) return "now";
  if (length < minute) return `${Math.floor(length / second)} s`;
  if (length < hour) return `${Math.floor(length / minute)} min`;
  if (length < 2 * day) return `${Math.floor(length / hour)} h`;
  return `${Math.floor(length / day)} d`;
}

/** `5 min ago` or `in 5 min`. */
export function relative(at: number, from: number): string {
  const text = brief(at - from);
  if (text === "now") return "now";
  return at > from ? `in ${text}` : `${text} ago`;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const dayAndClock = new Intl.DateTimeFormat(undefined, {
  weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hour12: false,
});

const yearAndClock = new Intl.DateTimeFormat(undefined, {
  day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", hour12: false,
});

/** The time of day today, else with the day, and with the year if that is another one. */
export function absolute(at: number, from: number): string {
  const [day, today] = [new Date(at), new Date(from)];
  if (day.toDateString() === today.toDateString()) return clock.format(at);
  return (day.getFullYear() === today.getFullYear() ? dayAndClock : yearAndClock).format(at);
}

export function parse(time: string | null | undefined): number | null {
  if (!time) return null;
  const at = Date.parse(time);
  return Number.isNaN(at) ? null : at;
}
