import type { Awaited, Outlook, WorkflowEvent } from "../api/types.ts";
import { writeJson } from "../lib/json.ts";
import type { Kind } from "../parts/Status.tsx";
import { firstLine } from "../lib/text.ts";
import { Cut } from "./values.ts";

const eventWords: Record<string, [string, Kind]> = {
  "workflow-start": ["started", "running"],
  "step-start": ["step started", "running"],
  "step-complete": ["step completed", "completed"],
  "step-error": ["attempt failed", "failed"],
  "step-skipped": ["step skipped", "skipped"],
  "step-cancelled": ["step cancelled", "cancelled"],
  "step-suspended": ["step waits", "waiting"],
  "step-resumed": ["step answered", "running"],
  "workflow-suspended": ["suspended", "held"],
  "workflow-resumed": ["resumed", "running"],
  "workflow-compensating": ["compensates", "running"],
  "compensation-start": ["compensation started", "running"],
  "compensation-complete": ["compensated", "completed"],
  "compensation-error": ["compensation failed", "failed"],
  "compensation-cancelled": ["compensation cancelled", "cancelled"],
  "workflow-complete": ["completed", "completed"],
  "workflow-error": ["failed", "failed"],
  "workflow-cancelled": ["cancelled", "cancelled"],
  "workflow-result": ["result", "none"],
};

export function eventWord(event: WorkflowEvent): { text: string; kind: Kind } {
  const [text, kind] = eventWords[event.type] ?? [event.type, "none" as Kind];
  if (event.type === "workflow-suspended") {
    const held = [event.suspension, ...(event.suspensions ?? [])].some((each) => each?.pause);
    return { text, kind: held ? "held" : "waiting" };
  }
  if (event.type === "compensation-complete" && event.skipped) return { text: "compensation skipped", kind: "skipped" };
  if (event.type === "step-error" && event.willRetry) return { text: "attempt failed, retries", kind: "retrying" };
  return { text, kind };
}

/** Returns the content of an event in a line: its error, its reason or its value. */
export function eventDetail(event: WorkflowEvent): string {
  if (event.error !== undefined) return firstLine(event.error);
  if (event.reason !== undefined) return firstLine(event.reason);
  if (event.suspension) return firstLine(event.suspension.reason);
  const value = event.type === "step-resumed" ? event.resumeData : (event.output ?? event.result);
  if (value instanceof Cut) return value.preview;
  return value === undefined ? "" : firstLine(writeJson(value) ?? "", 160);
}

export function isFailure(event: WorkflowEvent): boolean {
  return event.type === "step-error" || event.type === "compensation-error" || event.type === "workflow-error";
}

/** Returns a sentence that says who can answer. */
export function whoAnswers(to: readonly string[]): string {
  const named = to.filter((each) => !each.startsWith("!"));
  const except = to.includes("!self") ? ", but not who started it" : "";
  if (named.length === 0) return `Everyone who may resume it can answer${except}`;
  return `${named.map((each) => each.replace(/^user:/, "").replace(/^role:/, "role ")).join(" or ")} can answer${except}`;
}

/** The wait that a reader wants to hear of first. */
export function foremost(outlook: Outlook): Awaited | undefined {
  const order = ["hold", "resume", "missing", "interrupted", "server", "drain", "retry", "child", "step", "sleep"];
  return [...outlook.waitsFor].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind))[0];
}

/** Returns the time at which an execution that only sleeps wakes up, if it is known; null if it does not sleep. */
export function asleep(outlook: Outlook | undefined): { until: string | undefined } | null {
  const waits = outlook?.waitsFor ?? [];
  if (waits.length === 0 || waits.some((wait) => wait.kind !== "sleep")) return null;
  return { until: waits.flatMap(({ until }) => (until ? [until] : [])).sort((a, b) => Date.parse(a) - Date.parse(b))[0] };
}
