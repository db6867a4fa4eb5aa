import { get } from "../api/client.ts";
import { download } from "../lib/download.ts";
import { writeJson } from "../lib/json.ts";
import type { Ids } from "./Value.tsx";

/** Events of a page: the server makes it smaller if they are large. */
const pageMax = 1000;

/** Reads the whole record of an execution, with all values, and saves it as a file. */
export async function saveRecord(ids: Ids): Promise<void> {
  const state = await get("/workflows/{id}/executions/{executionId}/state", { path: ids });
  // Parts of the file, each as text: together they can be longer than a text may be.
  const parts = [`{"state":${writeJson(state)},"events":[`];
  let after: number | null = 0;
  while (after !== null) {
    const page: { events: unknown[]; nextAfter: number | null } = await get("/workflows/{id}/executions/{executionId}/events", { path: ids, query: { after, limit: pageMax } });
    parts.push((after > 0 ? "," : "") + page.events.map((event) => writeJson(event)).join(",\n"));
    after = page.nextAfter;
  }
  parts.push("]}\n");
  download(`${ids.executionId}.json`, "application/json", ...parts);
}
