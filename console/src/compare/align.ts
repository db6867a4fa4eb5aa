import type { ExecutionState } from "../api/types.ts";

type Step = ExecutionState["steps"][number];

/** A step as two executions have it. */
export interface Pair {
  path: string;
  left: Step | null;
  right: Step | null;
  /** Difference of the two: only one has the step, another outcome, or another output; null without one. */
  differs: "here" | "status" | "output" | null;
}

/** The steps of two executions side by side, in the order of the first; what only the second has follows. */
export function align(left: readonly Step[], right: readonly Step[]): Pair[] {
  const others = new Map(right.map((step) => [step.path, step]));
  const pairs = left.map((step) => {
    const other = others.get(step.path) ?? null;
    others.delete(step.path);
    return pairOf(step.path, step, other);
  });
  return [...pairs, ...[...others.values()].map((step) => pairOf(step.path, null, step))];
}

function pairOf(path: string, left: Step | null, right: Step | null): Pair {
  const differs = !left || !right ? "here" : left.status !== right.status ? "status" : isSame(left.output, right.output) ? null : "output";
  return { path, left, right, differs };
}

/** Returns true if two values are the same, whatever the order of their names. */
export function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null || Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  const names = Object.keys(left);
  return names.length === Object.keys(right).length && names.every((name) => name in right && isSame(left[name], right[name]));
}
