import type { BulkAction, Principal } from "../api/types.ts";
import type { Counts } from "../executions/BulkOutcome.tsx";
import { filterOf, wordsOf } from "../executions/filter.ts";
import { bulkWords } from "../lib/bulk.ts";
import type { Named } from "../lib/named.ts";
import { plural } from "../lib/text.ts";
import { absolute } from "../lib/time.ts";
import type { Model } from "./fold.ts";

/** Input of an operation. */
export interface Operation {
  action: BulkAction;
  /** Conditions as the API names them, with times in milliseconds. */
  filter?: Record<string, string | number>;
  executionIds?: string[];
  reason?: string;
  by?: Principal;
  /** The user to whose executions it is limited. */
  visibleTo?: string;
  /** The workflows to which it is limited. */
  allowed?: string[];
}

/** The server adds the time of the beginning, which is no condition of a person. */
const beginMs = 10_000;

/** Returns what an operation was asked to do, as people say it. */
export function sentenceOf({ action, filter = {}, executionIds }: Operation, startAt: string, workflows: readonly Named[] | undefined): string {
  const { verbs } = bulkWords[action];
  if (executionIds) return `${verbs} ${plural(executionIds.length, "execution")} that ${executionIds.length === 1 ? "was" : "were"} named.`;
  const text = (name: string): string => String(filter[name] ?? "");
  const conditions = { workflow: text("workflowId"), status: text("status"), user: text("userId"), id: text("idPrefix"), error: text("error"), parent: text("parentId"), replayOf: text("replayOf"), version: text("definitionHash"), via: text("via") };
  const time = (name: string, words: string): string => {
    const at = Number(filter[name] ?? Number.NaN);
    const isBegin = name === "to" && Math.abs(at - Date.parse(startAt)) < beginMs;
    return Number.isNaN(at) || isBegin ? "" : `${words} ${absolute(at, Date.parse(startAt))}`;
  };
  const times = [time("from", "started after"), time("to", "started before"), time("endedFrom", "ended after"), time("endedTo", "ended before")];
  const words = [wordsOf(filterOf(new URLSearchParams(conditions)), workflows), ...times].filter((each) => each !== "").join(", ");
  return words === "" ? `${verbs} all executions that it can.` : `${verbs} executions that ${words}.`;
}

/** Returns the counts of an operation: its result, or those after its last page. */
export function countsOf(model: Model): Counts | undefined {
  const pages = [...model.steps.values()].filter((step) => step.path.endsWith("/page"));
  return [model.result, ...pages.map((step) => step.output).reverse()].find(isCounts);
}

function isCounts(value: unknown): value is Counts {
  return typeof value === "object" && value !== null && "done" in value && "failures" in value;
}
