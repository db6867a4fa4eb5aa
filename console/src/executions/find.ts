import { get } from "../api/client.ts";
import type { ExecutionItem } from "../api/types.ts";

/** Pages that are read: of ids that begin with the whole of another one there are rarely many. */
const pagesMax = 10;
const pageSize = 200;

export interface Found {
  /** The execution with exactly this id. */
  execution: ExecutionItem | undefined;
  /** The newest of those whose ids begin with it. */
  others: ExecutionItem[];
}

/** Finds an execution by its id alone: the API names executions by their workflow as well, and lists know both. */
export async function findExecution(id: string, signal: AbortSignal): Promise<Found> {
  const others: ExecutionItem[] = [];
  let cursor: string | null = "";
  for (let page = 0; page < pagesMax && cursor !== null; page++) {
    const read: { executions: ExecutionItem[]; nextCursor: string | null } = await get("/workflows/executions", { query: { idPrefix: id, limit: pageSize, ...(cursor ? { cursor } : {}) }, signal });
    const execution = read.executions.find((item) => item.executionId === id);
    if (execution) return { execution, others: [] };
    others.push(...read.executions);
    cursor = read.nextCursor;
  }
  return { execution: undefined, others };
}
