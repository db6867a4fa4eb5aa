import { bulkWorkflow } from "./bulk.ts";

/** A workflow or an agent. */
export interface Named {
  id: string;
  name: string;
}

/** Names of what the server does not list. */
const ownNames: Record<string, string> = { [bulkWorkflow]: "Bulk operation" };

/** The name of an id; the id where it has none, or is no longer configured. */
export function nameOf(list: readonly Named[] | undefined, id: string): string {
  return list?.find((each) => each.id === id)?.name || (ownNames[id] ?? id);
}
