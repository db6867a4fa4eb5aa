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
  { name: "Home", icon: "home", href: to(), key: "h", part: "" },
  { name: "Executions", icon: "executions", href: to("executions"), key: "e", part: "executions" },
  { name: "Inbox", icon: "inbox", href: to("inbox"), key: "i", part: "inbox" },
  { name: "Workflows", icon: "workflows", href: to("workflows"), key: "w", part: "workflows" },
  { name: "Agents", icon: "agents", href: to("agents"), key: "a", part: "agents" },
  { name: "Tools", icon: "tools", href: to("tools"), key: "t", part: "tools" },
  { name: "Observe", icon: "observe", href: to("observe"), key: "o", part: "observe" },
  { name: "Connect", icon: "connect", href: to("connect"), key: "c", part: "connect" },
];
