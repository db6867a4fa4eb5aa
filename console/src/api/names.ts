import type { Named } from "../lib/named.ts";
import { get } from "./client.ts";
import { useResource } from "./resource.ts";

export interface Names {
  workflows: readonly Named[];
  agents: readonly Named[];
}

/** The registered workflows; undefined until they are read. */
export function useWorkflows(): readonly Named[] | undefined {
  return useResource((signal) => get("/workflows", { signal }), []).data;
}

/** What traces and logs are about. Those of what is no longer configured have an id only. */
export function useNames(): Names {
  const workflows = useWorkflows();
  const agents = useResource((signal) => get("/agents", { signal }), []);
  return { workflows: workflows ?? [], agents: agents.data ?? [] };
}
