import type { BulkAction } from "../api/types.ts";

/** Workflow whose executions are bulk operations. It is started and replayed by its own route only. */
export const bulkWorkflow = "greenroom.bulk";

/** Executions that an operation names, at most. */
export const idsMax = 1000;

/** The route of bulk operations. */
export const bulkPath = "/workflows/executions/bulk";

/** Words of a command for many. */
export const bulkWords: Record<BulkAction, { verb: string; verbs: string; done: string }> = {
  suspend: { verb: "Suspend", verbs: "Suspends", done: "suspended" },
  resume: { verb: "Resume", verbs: "Resumes", done: "resumed" },
  cancel: { verb: "Cancel", verbs: "Cancels", done: "cancelled" },
  replay: { verb: "Replay", verbs: "Replays", done: "replayed" },
};
