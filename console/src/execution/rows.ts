import type { SpanNode } from "../api/types.ts";
import { undonePath } from "../graph/definition.ts";
import type { Kind } from "../parts/Status.tsx";
import type { Busy } from "./scale.ts";
import { type Model, parents, type Step, withoutRounds } from "./fold.ts";

/** A piece of a bar. */
export interface Piece {
  from: number;
  /** Null while it lasts. */
  until: number | null;
  as: "run" | "wait" | "pause" | "failed";
  title: string;
}

/** An execution that a step started. */
export interface Child {
  workflowId: string;
  executionId: string;
}

/** A row of the waterfall: a step, or something that it called. */
export interface Row {
  key: string;
  path: string;
  label: string;
  depth: number;
  kind: Kind;
  pieces: Piece[];
  from: number;
  until: number | null;
  /** An execution that it started. */
  child?: Child;
  isCall: boolean;
  /** False if it only is around other rows. */
  isLeaf: boolean;
}

/** The times in which rows do something themselves: a container, and what waits, does not. */
export function busyOf(rows: readonly Row[]): Busy[] {
  return rows.filter((row) => row.isLeaf && !row.isCall).flatMap((row) => row.pieces.filter((piece) => piece.as === "run" || piece.as === "failed"));
}

/** The rows of an execution in the order in which its steps began. `children` stand in for calls that are not known. */
export function rowsOf(model: Model, calls: ReadonlyMap<string, readonly SpanNode[]>, sleeps: (path: string) => boolean, children: ReadonlyMap<string, Child> = new Map()): Row[] {
  const rows: Row[] = [];
  // The same for all rounds of a step, of which there can be thousands.
  const depths = new Map<string, number>();
  const containers = new Set([...model.steps.keys()].flatMap((path) => parents(path)));
  for (const step of model.steps.values()) {
    const bare = withoutRounds(step.path);
    const depth = depths.get(bare) ?? parents(step.path).filter((path) => model.steps.has(path)).length;
    depths.set(bare, depth);
    const kind = step.kind === "running" && sleeps(step.path) ? "sleeping" : step.kind;
    rows.push({
      key: step.path,
      path: step.path,
      label: labelOf(step),
      depth,
      kind,
      pieces: piecesOf(step, sleeps(step.path)),
      from: Date.parse(step.from),
      until: time(step.until),
      isCall: false,
      isLeaf: !containers.has(step.path),
    });
    for (const span of calls.get(step.path) ?? []) addCall(rows, step.path, span, depth + 1);
    const child = calls.has(step.path) ? undefined : children.get(step.path);
    if (child) rows.push({ key: `${step.path} ${child.executionId}`, path: step.path, label: `workflow ${child.workflowId}`, depth: depth + 1, kind, pieces: [], from: Date.parse(step.from), until: time(step.until), child, isCall: true, isLeaf: true });
  }
  return rows;
}

/** The id with its round: `paragraph [3]`, as steps of one block have the same id in every round. A compensation is `↩ pay`. */
function labelOf(step: Step): string {
  const id = undonePath(step.path) === null ? step.id : `↩ ${step.id}`;
  if (!step.path.includes("[")) return id;
  const rounds = [...step.path.matchAll(/\[(\d+)\]/g)].map((match) => match[1]);
  return rounds.length > 0 ? `${id} [${rounds.join(", ")}]` : id;
}

function piecesOf(step: Step, isSleep: boolean): Piece[] {
  const pieces: Piece[] = [];
  for (const attempt of step.attempts) {
    const [from, until] = [Date.parse(attempt.from), time(attempt.until)];
    const before = pieces.at(-1);
    if (before?.as === "failed" && before.until !== null && before.until < from) {
      pieces.push({ from: before.until, until: from, as: "pause", title: "pause before the next attempt" });
    }
    const failed = attempt.error !== undefined;
    const title = failed ? `attempt ${attempt.number} failed: ${attempt.error}` : isSleep ? "sleeps" : step.attempts.length > 1 ? `attempt ${attempt.number}` : "runs";
    pieces.push({ from, until, as: failed ? "failed" : isSleep ? "pause" : "run", title });
  }
  // Taken before the waits are added: they stand behind all attempts, whenever they were.
  const last = pieces.at(-1);
  for (const wait of step.waits) pieces.push({ from: Date.parse(wait.from), until: time(wait.until), as: "wait", title: `waits: ${wait.reason}` });
  if (step.kind === "retrying" && last?.until) pieces.push({ from: last.until, until: null, as: "pause", title: "pause before the next attempt" });
  return pieces;
}

function time(text: string | null | undefined): number | null {
  return text ? Date.parse(text) : null;
}

/** Calls inside calls are shown to this depth: agent, turn, tool. */
const callDepth = 4;

function addCall(rows: Row[], path: string, span: SpanNode, depth: number, level = 1): void {
  const from = Date.parse(span.startTime);
  const until = time(span.endTime);
  const failed = span.status.code === "ERROR";
  const row: Row = {
    key: `${path} ${span.spanId}`,
    path,
    label: callLabel(span),
    depth,
    kind: failed ? "failed" : until === null ? "running" : "completed",
    pieces: [{ from, until, as: failed ? "failed" : "run", title: span.name }],
    from,
    until,
    isCall: true,
    isLeaf: span.children.length === 0,
  };
  const child = childOf(span);
  if (child) row.child = child;
  rows.push(row);
  if (level < callDepth && !child) for (const inner of span.children) addCall(rows, path, inner, depth + 1, level + 1);
}

function callLabel(span: SpanNode): string {
  const [what, ...rest] = span.name.split(" ");
  const words: Record<string, string> = { chat: "turn", invoke_agent: "agent", invoke_workflow: "workflow", execute_tool: "tool" };
  return [words[what ?? ""] ?? what, ...rest].join(" ");
}

function childOf(span: SpanNode): Child | null {
  if (!span.name.startsWith("invoke_workflow")) return null;
  const { "workflow.execution.id": executionId, "entity.id": workflowId } = span.attributes;
  return typeof executionId === "string" && typeof workflowId === "string" ? { workflowId, executionId } : null;
}

/** Returns the calls of the steps of an execution, by path, from its trace. */
export function callsOf(tree: readonly SpanNode[], executionId: string): Map<string, SpanNode[]> {
  const found = new Map<string, SpanNode[]>();
  const look = (span: SpanNode): void => {
    const { "workflow.step.path": path, "workflow.execution.id": id } = span.attributes;
    const isStep = (each: SpanNode): boolean => each.name.startsWith("step ") && each.attributes["workflow.execution.id"] === executionId;
    if (typeof path === "string" && id === executionId && isStep(span)) {
      // its waits are events, and drawn as such
      const calls = span.children.filter((child) => !isStep(child) && !child.name.startsWith("wait "));
      if (calls.length > 0) found.set(path, [...(found.get(path) ?? []), ...calls]);
    }
    span.children.forEach(look);
  };
  tree.forEach(look);
  return found;
}
