import { type Course, courses } from "../api/kinds.ts";
import type { WorkflowStep } from "../api/types.ts";

/** A step of a definition, as a drawing needs it. */
export interface Node {
  /** Ids from the top, joined with `/`: without rounds and blocks. */
  key: string;
  id: string;
  name: string;
  type: WorkflowStep["type"];
  /** Agent or workflow that it calls. */
  calls: string;
  callsAgent: boolean;
  /** Name of the block that it is in; empty for a step of the workflow itself. */
  block: string;
  /** Work of its compensation; empty without one. */
  undo: string;
  children: Node[];
}

/** End of the path of a compensation. */
const undoSuffix = ":compensate";

/** Returns the path of the compensation of the step at a path, or its key for the key of the step. */
export function undoOf(path: string): string {
  return path + undoSuffix;
}

/** The path of the step that the one at a path compensates; null if that is a step of the definition. */
export function undonePath(path: string): string | null {
  return path.endsWith(undoSuffix) ? path.slice(0, -undoSuffix.length) : null;
}

/** Returns a name for an execution that began at a path of a step, and its workflow; null if no definition names that. */
export function startedAt(node: Node, path: string): { name: string; workflow: string | null } {
  if (undonePath(path) === null) return { name: "Started", workflow: node.calls };
  return node.undo === "" ? { name: "Reversal", workflow: node.calls } : { name: "Started", workflow: null };
}

/** Places of the steps inside: nowhere, in the only block, in one of several side by side, or in rounds of one. */
const places: Record<Course, "none" | "block" | "blocks" | "rounds"> = {
  work: "none",
  wait: "none",
  optional: "block",
  oneOf: "blocks",
  all: "blocks",
  race: "blocks",
  items: "rounds",
  rounds: "rounds",
};

function placeIn(node: Node): (typeof places)[Course] {
  return places[courses[node.type]];
}

export function isParallel(node: Node): boolean {
  return placeIn(node) === "blocks";
}

export function isRepeated(node: Node): boolean {
  return placeIn(node) === "rounds";
}

export function isSleep(node: Node | undefined): boolean {
  return node !== undefined && courses[node.type] === "wait";
}

/** The nodes of a definition. */
export function nodesOf(steps: readonly WorkflowStep[]): Node[] {
  return steps.map((step) => nodeOf(step, ""));
}

function nodeOf(step: WorkflowStep, prefix: string): Node {
  const key = prefix ? `${prefix}/${step.id}` : step.id;
  return {
    key,
    id: step.id,
    name: step.name || step.id,
    type: step.type,
    calls: step.agentId ?? step.workflowId ?? "",
    callsAgent: step.agentId !== undefined,
    block: step.block ?? "",
    undo: step.compensation ?? "",
    children: (step.steps ?? []).map((child) => nodeOf(child, key)),
  };
}

/** The step that a path of an execution, or of its compensation, belongs to; null if the definition has no such step. */
export function nodeAt(nodes: readonly Node[], path: string): Node | null {
  let found: Node | null = null;
  let level = nodes;
  let isBlock = false;
  for (const part of (undonePath(path) ?? path).split("/")) {
    if (isBlock) {
      isBlock = false;
      continue;
    }
    const id = part.replace(/\[\d+\]$/, "");
    found = level.find((each) => each.id === id) ?? null;
    if (!found) return null;
    level = found.children;
    // the name of a block is in the path, the number of a round is not
    isBlock = placeIn(found) === "block" || isParallel(found);
  }
  return found;
}

/** The key of the step that a path belongs to. */
export function keyOf(nodes: readonly Node[], path: string): string | null {
  return nodeAt(nodes, path)?.key ?? null;
}

export function count(nodes: readonly Node[]): number {
  return nodes.reduce((sum, node) => sum + 1 + count(node.children), 0);
}

/** The steps of one block, side by side with those of others. */
export interface Lane {
  name: string;
  nodes: Node[];
}

/** The lanes of a parallel container. */
export function lanesOf(node: Node): Lane[] {
  const lanes: Lane[] = [];
  for (const child of node.children) {
    const last = lanes.at(-1);
    if (last?.name === child.block) last.nodes.push(child);
    else lanes.push({ name: child.block, nodes: [child] });
  }
  return lanes;
}

/** A kind in words: `andForEach` is "for each". */
export function typeWord(type: string): string {
  if (type === "andThen") return "step";
  return type.replace(/^and/, "").replace(/\B[A-Z]/g, " $&").toLowerCase();
}
