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
  /** Name of the block that it is in, if that is known. */
  block: string | null;
  children: Node[];
}

/** Steps inside these have the name of their block in their path. */
const withBlocks = new Set(["andAll", "andRace", "andWhen", "andBranch"]);

export function isParallel(node: Node): boolean {
  return node.type === "andAll" || node.type === "andRace" || node.type === "andBranch";
}

export function isRepeated(node: Node): boolean {
  return node.type === "andForEach" || node.type === "andDoWhile" || node.type === "andDoUntil";
}

/**
 * The nodes of a definition. The API lists the steps of a container block by block and does not name the
 * blocks; the paths of executions do.
 */
export function nodesOf(steps: readonly WorkflowStep[], paths: Iterable<string> = []): Node[] {
  const nodes = steps.map((step) => nodeOf(step, ""));
  for (const path of paths) learn(nodes, path);
  return nodes;
}

function nodeOf(step: WorkflowStep, prefix: string): Node {
  const key = prefix ? `${prefix}/${step.id}` : step.id;
  return {
    key,
    id: step.id,
    name: step.name || step.id,
    type: step.type,
    calls: step.agentId ?? step.workflowId ?? "",
    block: null,
    children: (step.steps ?? []).map((child) => nodeOf(child, key)),
  };
}

/** A step on the way of a path. */
interface Visit {
  node: Node;
  block: string | null;
}

/** The nodes that a path of an execution leads through; null if the definition has no such step. */
export function visit(nodes: readonly Node[], path: string): Visit[] | null {
  const found: Visit[] = [];
  let level = nodes;
  let block: string | null = null;
  let isBlock = false;
  for (const part of path.split("/")) {
    if (isBlock) {
      block = part;
      isBlock = false;
      continue;
    }
    const id = part.replace(/\[\d+\]$/, "");
    const node = level.find((each) => each.id === id);
    if (!node) return null;
    found.push({ node, block });
    block = null;
    level = node.children;
    isBlock = withBlocks.has(node.type);
  }
  return found;
}

function learn(nodes: readonly Node[], path: string): void {
  for (const { node, block } of visit(nodes, path) ?? []) {
    if (block !== null) node.block = block;
  }
}

/** The key of the step that a path belongs to. */
export function keyOf(nodes: readonly Node[], path: string): string | null {
  return visit(nodes, path)?.at(-1)?.node.key ?? null;
}

export function count(nodes: readonly Node[]): number {
  return nodes.reduce((sum, node) => sum + 1 + count(node.children), 0);
}

/** Steps side by side. `isKnown` is false if it is not known that they belong together. */
export interface Lane {
  name: string;
  isKnown: boolean;
  nodes: Node[];
}

/** The lanes of a parallel container: a step with an unknown block stands alone. */
export function lanesOf(node: Node): Lane[] {
  const lanes: Lane[] = [];
  for (const child of node.children) {
    const last = lanes.at(-1);
    if (child.block !== null && last?.name === child.block) last.nodes.push(child);
    else lanes.push({ name: child.block ?? "", isKnown: child.block !== null, nodes: [child] });
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
