import type { Principal, Suspension, WorkflowEvent } from "../api/types.ts";
import type { Kind } from "../parts/Status.tsx";

/** A recorded event with its number. */
export interface Numbered {
  seq: number;
  event: WorkflowEvent;
}

/** One try of a step, as far as events tell it. */
export interface Attempt {
  number: number;
  from: string;
  until: string | null;
  error?: string;
  errorKind?: string;
  /** It began with an answer, and its start may still be reported. */
  isResumed?: boolean;
}

/** End of a wait: by an answer, or with what it was a part of. */
export type WaitEnd = "answered" | "completed" | "failed" | "skipped" | "cancelled";

/** A time in which a step waits for an answer. */
export interface Wait {
  from: string;
  until: string | null;
  reason: string;
  payload?: unknown;
  deadline?: string;
  suspensionId?: string;
  ended?: WaitEnd;
  answeredBy?: Principal;
  byDeadline?: boolean;
  data?: unknown;
}

export interface Step {
  path: string;
  id: string;
  kind: Kind;
  from: string;
  until: string | null;
  attempts: Attempt[];
  waits: Wait[];
  output?: unknown;
  error?: string;
  /** Numbers of its first and its last event. */
  first: number;
  last: number;
}

/** An execution as its events tell it. */
export interface Model {
  kind: Kind;
  from: string;
  until: string | null;
  /** Time of the last event. */
  at: string;
  last: number;
  steps: Map<string, Step>;
  hold: Suspension | null;
  result?: unknown;
  error?: string;
  reason?: string;
  by?: Principal;
}

export function empty(): Model {
  return { kind: "none", from: "", until: null, at: "", last: 0, steps: new Map(), hold: null };
}

/** The execution as it was after event `until`; as it is, without a number. */
export function fold(events: readonly Numbered[], until = Number.POSITIVE_INFINITY): Model {
  const model = empty();
  for (const numbered of events) {
    if (numbered.seq > until) break;
    apply(model, numbered);
  }
  roll(model);
  return model;
}

/** Adds an event. The model of a fold is its own, so it may change in place. */
export function apply(model: Model, { seq, event }: Numbered): void {
  model.last = seq;
  model.at = event.timestamp;
  if (event.type.startsWith("step-") || event.type.startsWith("compensation-")) applyToStep(model, seq, event);
  else applyToWorkflow(model, event);
}

function applyToWorkflow(model: Model, event: WorkflowEvent): void {
  switch (event.type) {
    case "workflow-start":
      model.kind = "running";
      model.from = event.timestamp;
      if (event.replayedBy) model.by = event.replayedBy;
      break;
    case "workflow-suspended": {
      const hold = [event.suspension, ...(event.suspensions ?? [])].find((each) => each?.pause);
      model.hold = hold ?? model.hold;
      model.kind = model.hold ? "held" : "waiting";
      break;
    }
    case "workflow-resumed":
      model.hold = null;
      model.kind = "running";
      break;
    case "workflow-complete":
      end(model, event, "completed");
      model.result = event.result;
      break;
    case "workflow-error":
      end(model, event, "failed");
      model.error = event.error ?? "";
      break;
    case "workflow-cancelled":
      end(model, event, "cancelled");
      model.reason = event.reason ?? "";
      if (event.cancelledBy) model.by = event.cancelledBy;
      break;
    default:
      break;
  }
}

function end(model: Model, event: WorkflowEvent, kind: Kind): void {
  model.kind = kind;
  model.until = event.timestamp;
  model.hold = null;
  // What was under way when the workflow ended has no event of its own.
  for (const step of model.steps.values()) {
    if (step.until === null && isOpen(step.kind)) {
      close(step, event.timestamp, kind === "completed" ? "completed" : "cancelled");
    }
  }
}

export function isOpen(kind: Kind): boolean {
  return kind === "running" || kind === "waiting" || kind === "retrying" || kind === "sleeping" || kind === "held";
}

function applyToStep(model: Model, seq: number, event: WorkflowEvent): void {
  const path = event.path ?? event.from;
  if (path === undefined) return;
  const step = stepAt(model, path, event, seq);
  step.last = seq;
  const time = event.timestamp;
  switch (event.type) {
    case "step-start":
    case "compensation-start":
      begin(step, time);
      break;
    case "step-complete":
      step.output = event.output;
      close(step, time, "completed");
      break;
    case "compensation-complete":
      step.output = event.output;
      close(step, time, isSkip(step, event) ? "skipped" : "completed");
      break;
    case "step-error":
    case "compensation-error":
      fail(step, event);
      break;
    case "step-skipped":
      close(step, time, "skipped");
      break;
    case "step-cancelled":
    case "compensation-cancelled":
      close(step, time, "cancelled");
      break;
    case "step-suspended":
      step.kind = "waiting";
      closeAttempt(step, time);
      step.waits.push(waitOf(event));
      break;
    case "step-resumed":
      resume(step, event);
      if (model.kind === "waiting") model.kind = "running";
      break;
    default:
      break;
  }
}

/** True for a compensation that a person skipped: by its mark, in older records by the answer before. */
function isSkip(step: Step, event: WorkflowEvent): boolean {
  const answer = step.waits.at(-1)?.data;
  return event.skipped === true || (typeof answer === "object" && answer !== null && "action" in answer && answer.action === "skip");
}

function stepAt(model: Model, path: string, event: WorkflowEvent, seq: number): Step {
  const known = model.steps.get(path);
  if (known) return known;
  const id = event.from ?? path;
  const step: Step = { path, id, kind: "running", from: event.timestamp, until: null, attempts: [], waits: [], first: seq, last: seq };
  model.steps.set(path, step);
  return step;
}

function begin(step: Step, time: string): void {
  step.kind = "running";
  step.until = null;
  const last = step.attempts.at(-1);
  if (last?.isResumed && last.until === null) {
    delete last.isResumed;
    return;
  }
  // One that is still open was interrupted: its end is not recorded.
  closeAttempt(step, time);
  step.attempts.push({ number: step.attempts.length + 1, from: time, until: null });
}

function fail(step: Step, event: WorkflowEvent): void {
  const attempt = step.attempts.at(-1);
  if (attempt) {
    attempt.until = event.timestamp;
    attempt.error = event.error ?? "";
    if (event.attempt !== undefined) attempt.number = event.attempt;
    if (event.errorKind) attempt.errorKind = event.errorKind + (event.errorStatus ? ` ${event.errorStatus}` : "");
  }
  if (event.willRetry) {
    // A child that asked has ended with the attempt: nothing answers what it asked.
    endWaits(step, event.timestamp, "failed");
    step.kind = "retrying";
    return;
  }
  step.error = event.error ?? "";
  close(step, event.timestamp, "failed");
}

function waitOf(event: WorkflowEvent): Wait {
  const wait: Wait = { from: event.timestamp, until: null, reason: event.reason ?? "" };
  if (event.payload !== undefined) wait.payload = event.payload;
  if (event.deadline !== undefined) wait.deadline = event.deadline;
  if (event.suspensionId !== undefined) wait.suspensionId = event.suspensionId;
  return wait;
}

function resume(step: Step, event: WorkflowEvent): void {
  const wait = step.waits.findLast((each) => each.until === null && (!event.suspensionId || each.suspensionId === event.suspensionId));
  if (wait) {
    wait.until = event.timestamp;
    wait.ended = "answered";
    if (event.resumedBy) wait.answeredBy = event.resumedBy;
    if (event.resumedByDeadline) wait.byDeadline = true;
    if (event.resumeData !== undefined) wait.data = event.resumeData;
  }
  if (step.waits.some((each) => each.until === null)) return;
  step.kind = "running";
  step.attempts.push({ number: step.attempts.length + 1, from: event.timestamp, until: null, isResumed: true });
}

function close(step: Step, time: string, as: Exclude<WaitEnd, "answered">): void {
  step.kind = as;
  step.until = time;
  closeAttempt(step, time);
  endWaits(step, time, as);
}

/** Ends the waits that have no answer. */
function endWaits(step: Step, time: string, ended: WaitEnd): void {
  for (const wait of step.waits) {
    if (wait.until === null) Object.assign(wait, { until: time, ended });
  }
}

function closeAttempt(step: Step, time: string): void {
  const attempt = step.attempts.at(-1);
  if (attempt && attempt.until === null) attempt.until = time;
}

/** A container is what the steps in it are: it waits if they do, and nothing in it runs. */
function roll(model: Model): void {
  const open = [...model.steps.values()].filter((step) => isOpen(step.kind));
  const containers = new Set(open.flatMap((step) => parents(step.path)));
  const inside = new Map<string, Set<Kind>>();
  for (const step of open) {
    if (containers.has(step.path)) continue;
    for (const parent of parents(step.path)) {
      inside.set(parent, (inside.get(parent) ?? new Set<Kind>()).add(step.kind));
    }
  }
  for (const [path, kinds] of inside) {
    const step = model.steps.get(path);
    const [first] = kinds;
    if (step?.kind === "running" && first && !kinds.has("running")) step.kind = kinds.has("waiting") ? "waiting" : first;
  }
}

/** Paths of the steps around a step, from the outermost: `a`, `a/b/c` of `a[0]/b/c/d`. */
export function parents(path: string): string[] {
  const found: string[] = [];
  const names = path.split("/");
  for (let length = 1; length < names.length; length++) {
    const whole = names.slice(0, length).join("/");
    found.push(whole);
    const bare = whole.replace(/\[\d+\]$/, "");
    if (bare !== whole) found.push(bare);
  }
  return found;
}

/** `each[]/pay` of `each[17]/pay`. */
export function withoutRounds(path: string): string {
  return path.includes("[") ? path.replace(/\[\d+\]/g, "[]") : path;
}
