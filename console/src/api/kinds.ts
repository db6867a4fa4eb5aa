// Made from the table of kinds by `UPDATE_DOCS=1 cargo test --lib the_kinds_of_the_console`.
import type { WorkflowStep } from "./types.ts";

/** Course of a step until it ends: its work, a wait, or its blocks in one of several ways. */
export type Course = "work" | "wait" | "optional" | "oneOf" | "all" | "race" | "items" | "rounds";

export const courses: Record<WorkflowStep["type"], Course> = {
  andThen: "work",
  andTap: "work",
  andWhen: "optional",
  andAll: "all",
  andRace: "race",
  andAgent: "work",
  andWorkflow: "work",
  andSleep: "wait",
  andSleepUntil: "wait",
  andMap: "work",
  andForEach: "items",
  andBranch: "oneOf",
  andDoWhile: "rounds",
  andDoUntil: "rounds",
};
