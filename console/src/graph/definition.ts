import type { WorkflowStep } from "../api/types.ts";

/** A step of a definition, as a drawing needs it. */
export interface Node {
  /** Ids from the top, joined with `/`: without rounds and blocks. */
  key: string;
  id: string;
  name: string;
  type: string;
  /** Agent or workflow that it calls. */
  calls: string;
  /** Name of the block that it is in; empty for a step of the workflow itself. */
  block: string;
  /** Work of its compensation; empty without one. */
  undo: string;
  children: Node[];
}

/** End of the path of a compensation. */
const undoSuffix = ":compensate";

/** Where the compensation of the step at a path, or with a key, is. */
export function undoOf(path: string): string {
  return path + undoSuffix;
}

/** The path of the step that the one at a path compensates; null if that is a step of the definition. */
export function undonePath(path: string): string | null {
  return path.endsWith(undoSuffix) ? path.slice(0, -undoSuffix.length) : null;
}

/** What an execution that began at a path is to its step, and its workflow; null if no definition names that. */
export function startedAt(node: Node, path: string): { name: string; workflow: string | null } {
  if (undonePath(path) === null) return { name: "Started", workflow: node.calls };
  return node.undo === "" ? { name: "Reversal", workflow: node.calls } : { name: "Started", workflow: null };
}

/** Steps inside these have the name of their block in their path. */
const withBlocks = new Set(["andAll", "andRace", "andWhen", "andBranch"]);

export function isParallel(node: Node): boolean {
  return node.type === "andAll" || node.type === "andRace" || node.type === "andBranch";
}

export function isRepeated(node: Node): boolean {
  return node.type === "andForEach" || node.type === "andDoWhile" || node.type === "andDoUntil";
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
    isBlock = withBlocks.has(found.type);
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

const words: Record<string, string> = {
  andThen: "step",
  andMap: "map",
  andTap: "tap",
  andWhen: "when",
  andAll: "all",
  andRace: "race",
  andBranch: "branch",
  andForEach: "for each",
  andDoWhile: "do while",
  andDoUntil: "do until",
  andAgent: "agent",
  andWorkflow: "workflow",
  andSleep: "sleep",
  andSleepUntil: "sleep until",
};

export function typeWord(type: string): string {
  return words[type] ?? type;
}
