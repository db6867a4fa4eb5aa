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

/** Reads the workflows and agents that traces and logs are about. One that is no longer configured is not among them. */
export function useNames(): Names {
  const workflows = useWorkflows();
  const agents = useResource((signal) => get("/agents", { signal }), []);
  return { workflows: workflows ?? [], agents: agents.data ?? [] };
}
