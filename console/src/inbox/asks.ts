import type { Ask } from "../api/types.ts";
import { nameOf, type Named } from "../lib/named.ts";

/** By deadline, those without one last, then by age: the order of the server. */
export function byUrgency(asks: readonly Ask[]): Ask[] {
  // Times are read once of each: there may be thousands, and more with every second.
  const keyed = asks.map((ask) => ({ ask, due: ask.deadline ? Date.parse(ask.deadline) : Number.POSITIVE_INFINITY, opened: Date.parse(ask.openedAt) }));
  const compare = (a: number, b: number): number => (a === b ? 0 : a - b);
  return keyed.sort((a, b) => compare(a.due, b.due) || compare(a.opened, b.opened)).map(({ ask }) => ask);
}

/** Orders of the list: that of the server, and the oldest first. */
export type Order = "deadline" | "age";

export function ordered(asks: readonly Ask[], order: Order): Ask[] {
  return order === "deadline" ? [...asks] : [...asks].sort((a, b) => Date.parse(a.openedAt) - Date.parse(b.openedAt));
}

/** Puts news of an ask among the open and the closed ones. An older revision than the known one changes nothing. */
export function change(asks: Map<string, Ask>, closed: Map<string, Ask>, ask: Ask): void {
  const known = asks.get(ask.askId);
  if (ask.state !== "open") {
    asks.delete(ask.askId);
    closed.set(ask.askId, ask);
  } else if (!closed.has(ask.askId) && !(known && known.revision > ask.revision)) {
    asks.set(ask.askId, ask);
  }
}

/** Returns the place of a question in the words of a person, `Expense approval / manager`, and its view. */
export function origin(ask: Ask, workflows?: readonly Named[]): { text: string; view: string[] } {
  const { of } = ask;
  if ("executionId" in of) return { text: `${nameOf(workflows, of.workflowId)} / ${of.stepId}`, view: ["executions", of.workflowId, of.executionId] };
  return { text: `${of.agentId} / ${of.toolName}`, view: ["agents", of.agentId] };
}

export const whyNotOwn = "You started it: another person has to answer";

/** The answer to an approval, with the input if that was changed. */
export function approvalOf(approved: boolean, reason: string, changed: unknown): unknown {
  return {
    approved,
    ...(reason.trim() ? { reason: reason.trim() } : {}),
    ...(approved && changed !== undefined ? { input: changed } : {}),
  };
}

/** The answer to a question that may be declined, whatever its schema is (`canDecline`). */
export const declining = { action: "decline" };

/** Returns true if a question is for everyone but the user who started it, and that is `user`. */
export function isExcluded(ask: Ask, user: string): boolean {
  return user !== "" && ask.userId === user && ask.to.includes("!self");
}

export type Whose = "mine" | "roles" | "all";

/** Returns the questions that name `user` or are claimed by that user, those that name a role, or all. */
export function whose(asks: Ask[], which: Whose, user: string): Ask[] {
  if (which === "all") return asks;
  if (which === "roles") return asks.filter((ask) => ask.to.some((to) => to.startsWith("role:")));
  return asks.filter((ask) => ask.to.includes(`user:${user}`) || ask.claimedBy === user);
}
