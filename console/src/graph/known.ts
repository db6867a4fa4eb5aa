import { get } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import type { WorkflowStep } from "../api/types.ts";

/** Executions that are asked which blocks there are. */
const asked = 3;

/**
 * Paths of the last executions that completed: the API does not name the blocks of a definition, and they do. A
 * workflow without lanes has none to ask for.
 */
export function useKnownPaths(id: string, steps: readonly WorkflowStep[]): readonly string[] {
  const isNeeded = steps.some(hasLanes);
  const known = useResource(
    async (signal) => {
      if (!isNeeded) return [];
      const { executions } = await get("/workflows/{id}/executions", { path: { id }, query: { limit: asked, status: "completed" }, signal });
      const states = await Promise.all(executions.map(({ executionId }) => get("/workflows/{id}/executions/{executionId}/state", { path: { id, executionId }, signal })));
      return [...new Set(states.flatMap((state) => state.steps.map((step) => step.path.replaceAll(/\[\d+\]/g, "[0]"))))];
    },
    [id, isNeeded],
  );
  return known.data ?? none;
}

const none: readonly string[] = [];

function hasLanes(step: WorkflowStep): boolean {
  return step.type === "andAll" || step.type === "andRace" || step.type === "andBranch" || (step.steps ?? []).some(hasLanes);
}
