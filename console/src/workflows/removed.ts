import type { StatusCounts } from "../api/types.ts";
import { bulkWorkflow } from "../lib/bulk.ts";

type Counted = StatusCounts & { workflowId: string };

/** Returns the workflows that have stored executions but are no longer registered. */
export function removedOf(counts: readonly Counted[], registered: readonly { id: string }[]): Counted[] {
  const known = new Set(registered.map(({ id }) => id));
  return counts.filter(({ workflowId }) => !known.has(workflowId) && workflowId !== bulkWorkflow);
}
