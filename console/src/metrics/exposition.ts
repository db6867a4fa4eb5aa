/** The text format of Prometheus, as far as charts need it. */

export interface Sample {
  labels: Record<string, string>;
  value: number;
}

/** Samples that were read at one time, by name of the metric. */
export interface Snapshot {
  at: number;
  samples: ReadonlyMap<string, readonly Sample[]>;
}

/** Labels that a sample has to have: a value, or a pattern of the whole value. */
export type Where = Record<string, string | RegExp>;

const line = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/;
const label = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

export function parse(text: string, at: number): Snapshot {
  const samples = new Map<string, Sample[]>();
  for (const each of text.split("\n")) {
    if (each.startsWith("#")) continue;
    const [, name, inside = "", value = ""] = line.exec(each) ?? [];
    if (!name) continue;
    const labels: Record<string, string> = {};
    for (const [, key = "", raw = ""] of inside.matchAll(label)) labels[key] = raw.replace(/\\(.)/g, (_, letter: string) => (letter === "n" ? "\n" : letter));
    const known = samples.get(name);
    const sample = { labels, value: numberOf(value) };
    if (known) known.push(sample);
    else samples.set(name, [sample]);
  }
  return { at, samples };
}

function numberOf(text: string): number {
  if (text === "+Inf") return Infinity;
  return text === "-Inf" ? -Infinity : Number(text);
}

function fits(labels: Record<string, string>, where: Where): boolean {
  return Object.entries(where).every(([name, wanted]) => {
    const value = labels[name] ?? "";
    return typeof wanted === "string" ? value === wanted : new RegExp(`^(?:${wanted.source})$`, "s").test(value);
  });
}

/** The sum of the samples; null if the server has no such metric. */
export function sum({ samples }: Snapshot, name: string, where: Where = {}): number | null {
  const found = samples.get(name);
  if (!found) return null;
  return found.filter(({ labels }) => fits(labels, where)).reduce((total, { value }) => total + value, 0);
}

/** Returns the growth of a counter; a smaller value is one that began anew. */
function growth(before: number | null, after: number | null): number | null {
  if (after === null) return null;
  return before === null || after < before ? after : after - before;
}

/** Growth of a counter per second. */
export function rate(before: Snapshot, after: Snapshot, name: string, where: Where = {}): number | null {
  const grown = growth(sum(before, name, where), sum(after, name, where));
  const seconds = (after.at - before.at) / 1000;
  return grown === null || seconds <= 0 ? null : grown / seconds;
}

/** A quantile of what a histogram observed in between, as `histogram_quantile` estimates it; null if it observed nothing. */
export function quantile(before: Snapshot, after: Snapshot, name: string, q: number, where: Where = {}): number | null {
  const buckets = after.samples.get(`${name}_bucket`);
  if (!buckets) return null;
  const bounds = [...new Set(buckets.map(({ labels }) => labels.le ?? ""))].map((le) => ({ le, bound: numberOf(le) })).sort((a, b) => a.bound - b.bound);
  const counts = bounds.map(({ le }) => growth(sum(before, `${name}_bucket`, { ...where, le }), sum(after, `${name}_bucket`, { ...where, le })) ?? 0);
  const all = counts.at(-1) ?? 0;
  if (all <= 0) return null;
  const index = counts.findIndex((count) => count >= q * all);
  const upper = bounds[index]?.bound ?? Infinity;
  const [lower, below] = index > 0 ? [bounds[index - 1]?.bound ?? 0, counts[index - 1] ?? 0] : [0, 0];
  // above the largest bound only the bound is known
  if (upper === Infinity) return lower;
  return lower + (upper - lower) * ((q * all - below) / Math.max(1, (counts[index] ?? 0) - below));
}
