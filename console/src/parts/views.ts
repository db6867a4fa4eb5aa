import { to } from "../lib/router.ts";
import type { IconName } from "./icons.tsx";

export interface View {
  name: string;
  icon: IconName;
  href: string;
  /** Behind `g`. */
  key: string;
  /** First part of its path. */
  part: string;
}

/** The views of the rail, in order. */
export const views: View[] = [
  { name: "Executions", icon: "executions", href: to("executions"), key: "e", part: "executions" },
  { name: "Inbox", icon: "inbox", href: to("inbox"), key: "i", part: "inbox" },
];
