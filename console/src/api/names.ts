import { get } from "./client.ts";
import { useResource } from "./resource.ts";

interface Named {
  id: string;
  name: string;
}

export interface Names {
  workflows: Named[];
  agents: Named[];
}

/** The registered workflows; undefined until they are read. */
export function useWorkflows(): Named[] | undefined {
  return useResource((signal) => get("/workflows", { signal }), []).data;
}

/** What traces and logs are about. Those of what is no longer configured have an id only. */
export function useNames(): Names {
  const workflows = useWorkflows();
  const agents = useResource((signal) => get("/agents", { signal }), []);
  return { workflows: workflows ?? [], agents: agents.data ?? [] };
}

export function nameOf(list: readonly Named[] | undefined, id: string): string {
  return list?.find((each) => each.id === id)?.name || id;
}
