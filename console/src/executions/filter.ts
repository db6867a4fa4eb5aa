/** The filter of the list, as the address has it. */
export interface Filter {
  workflow: string;
  status: string;
  user: string;
  range: string;
  replayOf: string;
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
  return { workflow: value("workflow"), status: value("status"), user: value("user"), range: value("range"), replayOf: value("replayOf") };
}

export function isEmpty(filter: Filter): boolean {
  return Object.values(filter).every((value) => value === "");
}

/** The query of the API. Failures are looked for by the time of their end, others by that of their start. */
export function queryOf(filter: Filter, now: number): Record<string, string> {
  const query: Record<string, string> = {};
  if (filter.status in statuses) query.status = filter.status;
  if (filter.user) query.userId = filter.user;
  if (filter.replayOf) query.replayOf = filter.replayOf;
  const range = ranges[filter.range];
  if (range) query[filter.status === "error" ? "endedFrom" : "from"] = new Date(now - range.ms).toISOString();
  return query;
}
