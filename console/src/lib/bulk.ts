/** Workflow whose executions are bulk operations. It is started and replayed by its own route only. */
export const bulkWorkflow = "greenroom.bulk";

/** Executions that an operation names, at most. */
export const idsMax = 1000;

/** The route of bulk operations. */
export const bulkPath = "/workflows/executions/bulk";
