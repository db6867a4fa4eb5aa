import { absoluteTimes } from "../lib/settings.ts";
import { absolute, brief, duration, now, parse, relative } from "../lib/time.ts";

/** A point in time, relative or absolute as the person chose, with the other one on hover. */
export function Time({ at }: { at: string | null | undefined }) {
  const time = parse(at);
  if (time === null) return <span class="quiet">–</span>;
  const [shown, other] = [relative(time, now.value), absolute(time, now.value)];
  const [text] = absoluteTimes.value ? [other] : [shown];
  return (
    <time dateTime={at ?? ""} title={`${new Date(time).toLocaleString()} (${at ?? ""})`}>
      {text}
    </time>
  );
}

/** `for 2 h`: how long something lasts already. */
export function Since({ at }: { at: string }) {
  const time = parse(at) ?? now.value;
  return (
    <time dateTime={at} title={new Date(time).toLocaleString()}>
      for {brief(now.value - time) === "now" ? "0 s" : brief(now.value - time)}
    </time>
  );
}

/** `until Sat, 28 Nov, 19:18 (in 47 h)`. */
export function Until({ at }: { at: string }) {
  const time = parse(at) ?? now.value;
  return (
    <time dateTime={at} title={new Date(time).toLocaleString()}>
      until {absolute(time, now.value)} ({relative(time, now.value)})
    </time>
  );
}

/** Shows the time that something took, or takes so far. */
export function Duration({ from, until, rough }: { from: string | null | undefined; until?: string | null | undefined; rough?: boolean }) {
  const start = parse(from);
  if (start === null) return <span class="quiet">–</span>;
  const end = parse(until);
  if (end !== null) return <span class="number">{duration(end - start)}</span>;
  return <span class="number">{rough ? `${brief(now.value - start) === "now" ? "0 s" : brief(now.value - start)} so far` : `${lasting(now.value - start)} so far`}</span>;
}

/** A length that changes every second shows no fractions. */
export function lasting(ms: number): string {
  if (ms < 1000) return "0 s";
  return duration(Math.floor(Math.max(ms, 0) / 1000) * 1000 || 0).replace(/(\d+)\.\d+ s/, "$1 s");
}
