import type { Ask, Suspension } from "../api/types.ts";
import { hasParts, Long } from "../lib/json.ts";

/** Fields of a payload that a line shows, and letters of their text. */
const fieldsMax = 3;
const lettersMax = 80;

/** Finds questions that have the same words as another one: only what they are about tells them apart. */
export function alike(asks: readonly Ask[]): Set<string> {
  const counts = new Map<string, number>();
  for (const { reason } of asks) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return new Set(asks.filter(({ reason }) => (counts.get(reason) ?? 0) > 1).map(({ askId }) => askId));
}

/** The first plain fields of what a question is about: `order A-1, amount 900`. */
export function firstFields(payload: unknown): string {
  if (!hasParts(payload)) return payload === null || payload === undefined ? "" : String(payload).slice(0, lettersMax);
  const plain = Object.entries(payload).filter(([, value]) => (typeof value !== "object" || value instanceof Long) && value !== "");
  return plain.slice(0, fieldsMax).map(([name, value]) => `${name} ${String(value)}`).join(", ").slice(0, lettersMax);
}

/** Returns what a question is about, from a list of executions: of its execution, the suspension at its path. */
export function aboutOf(ask: Ask, executions: readonly { executionId: string; suspension?: Suspension; suspensions?: Suspension[] }[]): string {
  const { of } = ask;
  if (!("executionId" in of)) return "";
  const execution = executions.find(({ executionId }) => executionId === of.executionId);
  const suspensions = [...(execution?.suspensions ?? []), ...(execution?.suspension ? [execution.suspension] : [])];
  return firstFields(suspensions.find(({ path }) => path === of.path)?.payload);
}
