import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { send } from "../api/client.ts";
import { type ApiError, refusal } from "../api/error.ts";
import { asError } from "../api/resource.ts";
import { charts, keyOf, valueOf } from "./charts.ts";
import { parse, type Snapshot } from "./exposition.ts";

export interface History {
  /** Seconds, as the charts take them. */
  times: number[];
  values: ReadonlyMap<string, (number | null)[]>;
  error: ApiError | null;
}

/** Values that were measured since the page was opened. The server keeps only the newest ones. */
export const measured = signal<History>({ times: [], values: new Map(), error: null });

export const interval = 5000;
/** An hour. */
const pointsMax = 720;

let before: Snapshot | null = null;
let watchers = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Reads the metrics while somebody sees the calling view. */
export function useMeasured(): History {
  useEffect(() => {
    watchers += 1;
    if (watchers === 1) void beat();
    return () => {
      watchers -= 1;
      if (watchers === 0) clearTimeout(timer);
    };
  }, []);
  return measured.value;
}

async function beat(): Promise<void> {
  clearTimeout(timer);
  if (!document.hidden) await measure();
  const status = measured.peek().error?.status ?? 0;
  const isRefused = status >= 400 && status < 500;
  // the first value needs two readings: nobody waits long for it
  const pause = measured.peek().times.length === 0 ? 1000 : interval;
  if (watchers > 0 && !isRefused) timer = setTimeout(() => void beat(), pause);
}

async function measure(): Promise<void> {
  try {
    const response = await send("GET", "/metrics");
    if (!response.ok) throw await refusal(response);
    const snapshot = parse(await response.text(), Date.now());
    if (before) measured.value = added(measured.peek(), before, snapshot);
    else measured.value = { ...measured.peek(), error: null };
    before = snapshot;
  } catch (error) {
    measured.value = { ...measured.peek(), error: asError(error) };
  }
}

function added(history: History, from: Snapshot, until: Snapshot): History {
  // Over a pause a mean would look like a measurement: there is a gap in place of it.
  const isGap = until.at - from.at > 3 * interval;
  const times = [...history.times, until.at / 1000].slice(-pointsMax);
  const values = new Map<string, (number | null)[]>();
  for (const chart of charts) {
    for (const series of chart.series) {
      const key = keyOf(chart, series);
      values.set(key, [...(history.values.get(key) ?? []), isGap ? null : valueOf(series, from, until)].slice(-pointsMax));
    }
  }
  return { times, values, error: null };
}
