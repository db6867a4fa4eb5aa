import type { StatusCounts } from "../api/types.ts";
import { bulkWorkflow } from "../lib/bulk.ts";

type Counted = StatusCounts & { workflowId: string };

/** Workflows that executions are stored of although they are not registered any more. */
export function removedOf(counts: readonly Counted[], registered: readonly { id: string }[]): Counted[] {
  const known = new Set(registered.map(({ id }) => id));
  return counts.filter(({ workflowId }) => !known.has(workflowId) && workflowId !== bulkWorkflow);
}
