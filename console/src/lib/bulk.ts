/** Workflow whose executions are bulk operations. It is started and replayed by its own route only. */
export const bulkWorkflow = "greenroom.bulk";
