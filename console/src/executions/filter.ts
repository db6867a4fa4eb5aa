import { nameOf, type Named } from "../lib/named.ts";
import { middle } from "../lib/text.ts";
import { toInput } from "../schema/typed.ts";

/** The filter of the list, as the address has it. */
export interface Filter {
  workflow: string;
  status: string;
  user: string;
  /** Begin of the id. */
  id: string;
  /** Text in the message of the failure. */
  error: string;
  /** The execution that started them. */
  parent: string;
  /** One of `ranges`, or `between` with `from` and `to`, which are times with a zone: who gets the address may be in another one. */
  range: string;
  from: string;
  to: string;
  replayOf: string;
  /** Hash of the definition that they began with. */
  version: string;
  /** The door through which they were started, as the API has it: `mcp`, `mcp:NAME`, `openai`. */
  via: string;
}

export const statuses: Record<string, string> = {
  running: "running",
  suspended: "waiting or suspended",
  completed: "completed",
  error: "failed",
  cancelled: "cancelled",
};

export const ranges: Record<string, { text: string; ms: number }> = {
  "1h": { text: "last hour", ms: 3_600_000 },
  "24h": { text: "last 24 hours", ms: 86_400_000 },
  "7d": { text: "last 7 days", ms: 7 * 86_400_000 },
  "30d": { text: "last 30 days", ms: 30 * 86_400_000 },
};

export function filterOf(query: URLSearchParams): Filter {
  const value = (name: string): string => query.get(name) ?? "";
  return { workflow: value("workflow"), status: value("status"), user: value("user"), id: value("id"), error: value("error"), parent: value("parent"), range: value("range"), from: value("from"), to: value("to"), replayOf: value("replayOf"), version: value("version"), via: value("via") };
}

/** Returns true if the server lists by time of end: last ended first. */
export function isByEnd(filter: Filter): boolean {
  return filter.status === "error" && filter.range !== "";
}

export function isEmpty(filter: Filter): boolean {
  return Object.values(filter).every((value) => value === "");
}

/** Counts its conditions; a range between two times is one. */
export function countOf(filter: Filter): number {
  return Object.entries(filter).filter(([name, value]) => value !== "" && name !== "from" && name !== "to").length;
}

/** True for a hash as the API takes it. */
export function isWholeHash(version: string): boolean {
  return /^[0-9a-f]{64}$/.test(version);
}

/** The filter as people say it. */
export function wordsOf(filter: Filter, workflows?: readonly Named[]): string {
  const time = filter.status === "error" ? "ended" : "started";
  const range = ranges[filter.range];
  return [
    filter.status in statuses && `are ${statuses[filter.status]}`,
    filter.workflow && `are of ${nameOf(workflows, filter.workflow)}`,
    filter.user && `are of the user ${filter.user}`,
    filter.id && `have an id that begins with ${filter.id}`,
    filter.error && `failed with “${filter.error}”`,
    filter.parent && `were started by ${filter.parent}`,
    filter.replayOf && `replay ${filter.replayOf}`,
    filter.version && `began with version ${middle(filter.version, 17)}`,
    filter.via && `were started through ${filter.via}`,
    range && `${time} in the ${range.text}`,
    filter.range === between && filter.from && `${time} after ${wall(filter.from)}`,
    filter.range === between && filter.to && `${time} before ${wall(filter.to)}`,
  ]
    .filter(Boolean)
    .join(", ");
}

/** Value of `range` for two times that a person chose. */
export const between = "between";

/** A time as the clock on the wall shows it. */
function wall(time: string): string {
  return toInput(time, "date-time").replace("T", " ");
}

/** A time with a zone; without one, as older addresses have it, of the clock on the wall. */
function instant(time: string): string | null {
  const at = Date.parse(time);
  return Number.isNaN(at) ? null : new Date(at).toISOString();
}

/** The query of the API. Failures are looked for by the time of their end, others by that of their start. */
export function queryOf(filter: Filter, now: number): Record<string, string> {
  const query: Record<string, string> = {};
  if (filter.status in statuses) query.status = filter.status;
  if (filter.user) query.userId = filter.user;
  if (filter.replayOf) query.replayOf = filter.replayOf;
  if (filter.id) query.idPrefix = filter.id;
  if (filter.error) query.error = filter.error;
  if (filter.version) query.definitionHash = filter.version;
  if (filter.via) query.via = filter.via;
  if (filter.parent) query.parentExecutionId = filter.parent;
  const [from, to] = filter.status === "error" ? (["endedFrom", "endedTo"] as const) : (["from", "to"] as const);
  const range = ranges[filter.range];
  if (range) query[from] = new Date(now - range.ms).toISOString();
  if (filter.range !== between) return query;
  const [first, last] = [instant(filter.from), instant(filter.to)];
  if (first) query[from] = first;
  if (last) query[to] = last;
  return query;
}
