import type { ExecutionState } from "../api/types.ts";
import { isRepeated, isSleep, type Node, nodeAt, undonePath, undoOf } from "../graph/definition.ts";
import type { Look } from "../graph/Graph.tsx";
import { duration } from "../lib/time.ts";
import { number } from "../lib/text.ts";
import type { Kind } from "../parts/Status.tsx";
import { lasting } from "../parts/Time.tsx";
import { type Model, type Step, withoutRounds } from "./fold.ts";
import type { Child } from "./rows.ts";

/** The steps of an execution by their place in the definition, and their compensations. */
export type Places = ReadonlyMap<string, readonly Step[]>;

export function placesOf(model: Model, nodes: readonly Node[]): { places: Places; unknown: number } {
  const places = new Map<string, Step[]>();
  const nodeAt = finder(nodes);
  let unknown = 0;
  for (const step of model.steps.values()) {
    const node = nodeAt(step.path);
    if (!node) {
      unknown += 1;
      continue;
    }
    const key = undonePath(step.path) === null ? node.key : undoOf(node.key);
    const list = places.get(key);
    if (list) list.push(step);
    else places.set(key, [step]);
  }
  return { places, unknown };
}

/** Finds the node of a path. All rounds of a step have one, so it is looked for once. */
export function finder(nodes: readonly Node[]): (path: string) => Node | undefined {
  const known = new Map<string, Node | undefined>();
  return (path) => {
    const bare = withoutRounds(path);
    if (!known.has(bare)) known.set(bare, nodeAt(nodes, path) ?? undefined);
    return known.get(bare);
  };
}

/** The executions that steps started, by the paths of the steps, as the state knows them. */
export function childrenOf(state: ExecutionState, nodes: readonly Node[]): Map<string, Child> {
  const nodeAt = finder(nodes);
  const found = new Map<string, Child>();
  for (const { path, childExecutionId: executionId } of state.steps) {
    const workflowId = nodeAt(path)?.calls;
    if (executionId && workflowId) found.set(path, { workflowId, executionId });
  }
  return found;
}

const worst: Kind[] = ["failed", "waiting", "retrying", "held", "running", "sleeping", "completed", "cancelled", "skipped"];

/** Returns the look of a place: that of its step, or of the worst of its rounds with the number of those that have ended. */
export function lookOf(steps: readonly Step[] | undefined, node: Node | undefined, now: number, isPast = false): Look {
  const [step] = steps ?? [];
  if (!steps || !step) return { kind: "none", text: "" };
  const kindOf = (each: Step): Kind => (each.kind === "running" && isSleep(node) ? "sleeping" : each.kind);
  if (steps.length > 1) {
    const kinds = new Set(steps.map(kindOf));
    const over = steps.filter((each) => each.until !== null).length;
    return { kind: worst.find((kind) => kinds.has(kind)) ?? "none", text: `${number(over)}/${number(steps.length)}` };
  }
  const length = (step.until === null ? now : Date.parse(step.until)) - Date.parse(step.from);
  const text = step.until === null && !isPast ? lasting(length) : duration(length);
  return { kind: kindOf(step), text: node && isRepeated(node) && step.until === null ? "" : text };
}

/** The round that somebody wants to see who clicks on the step: what failed, waits or runs, else the last. */
export function telling(steps: readonly Step[]): Step | undefined {
  for (const kind of worst.slice(0, 6)) {
    const found = steps.find((step) => step.kind === kind);
    if (found) return found;
  }
  return steps.at(-1);
}
