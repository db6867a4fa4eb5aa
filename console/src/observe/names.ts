import { get } from "../api/client.ts";
import { useResource } from "../api/resource.ts";

interface Named {
  id: string;
  name: string;
}

export interface Names {
  workflows: Named[];
  agents: Named[];
}

/** What traces and logs are about. Those of what is no longer configured have an id only. */
export function useNames(): Names {
  const workflows = useResource((signal) => get("/workflows", { signal }), []);
  const agents = useResource((signal) => get("/agents", { signal }), []);
  return { workflows: workflows.data ?? [], agents: agents.data ?? [] };
}

export function nameOf(list: readonly Named[], id: string): string {
  return list.find((each) => each.id === id)?.name || id;
}
