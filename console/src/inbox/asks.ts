import type { Ask } from "../api/types.ts";
import { nameOf, type Named } from "../lib/named.ts";

/** By deadline, those without one last, then by age: the order of the server. */
export function byUrgency(asks: Ask[]): Ask[] {
  const due = (ask: Ask): number => (ask.deadline ? Date.parse(ask.deadline) : Number.POSITIVE_INFINITY);
  const compare = (a: number, b: number): number => (a === b ? 0 : a - b);
  return asks.sort((a, b) => compare(due(a), due(b)) || compare(Date.parse(a.openedAt), Date.parse(b.openedAt)));
}

/** Orders of the list: that of the server, and the oldest first. */
export type Order = "deadline" | "age";

export function ordered(asks: readonly Ask[], order: Order): Ask[] {
  return order === "deadline" ? [...asks] : [...asks].sort((a, b) => Date.parse(a.openedAt) - Date.parse(b.openedAt));
}

/** The open and the closed asks after news of one. An older revision than the known one changes nothing. */
export function change(asks: Map<string, Ask>, closed: Map<string, Ask>, ask: Ask): { asks: Map<string, Ask>; closed: Map<string, Ask> } {
  const known = asks.get(ask.askId);
  const next = { asks: new Map(asks), closed: new Map(closed) };
  if (ask.state === "open") {
    if (closed.has(ask.askId) || (known && known.revision > ask.revision)) return { asks, closed };
    next.asks.set(ask.askId, ask);
  } else {
    next.asks.delete(ask.askId);
    next.closed.set(ask.askId, ask);
  }
  return next;
}

/** Where it is in the words of a person: `Expense approval / manager`. */
export function origin(ask: Ask, workflows?: readonly Named[]): { text: string; view: string[] } {
  const { of } = ask;
  if ("executionId" in of) return { text: `${nameOf(workflows, of.workflowId)} / ${of.stepId}`, view: ["executions", of.workflowId, of.executionId] };
  return { text: `${of.agentId} / ${of.toolName}`, view: ["agents", of.agentId] };
}

export const whyNotOwn = "You started it: another person has to answer";

/** The answer to a question that may be declined, whatever its schema is (`canDecline`). */
export const declining = { action: "decline" };

/** Returns true if a question is for everyone but the user who started it, and that is `user`. */
export function isExcluded(ask: Ask, user: string): boolean {
  return user !== "" && ask.userId === user && ask.to.includes("!self");
}

export type Whose = "mine" | "roles" | "all";

/** Those that name `user`, those that name a role, or all. */
export function whose(asks: Ask[], which: Whose, user: string): Ask[] {
  if (which === "all") return asks;
  if (which === "roles") return asks.filter((ask) => ask.to.some((to) => to.startsWith("role:")));
  return asks.filter((ask) => ask.to.includes(`user:${user}`) || ask.claimedBy === user);
}
