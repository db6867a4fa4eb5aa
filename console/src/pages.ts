import type { ComponentType } from "preact";
import { AgentsView } from "./agents/List.tsx";
import { AgentView } from "./agents/One.tsx";
import { CompareView } from "./compare/View.tsx";
import { ConnectView } from "./connect/View.tsx";
import { ExecutionView } from "./execution/View.tsx";
import { FindView } from "./executions/FindView.tsx";
import { ExecutionsView } from "./executions/View.tsx";
import { HomeView } from "./home/View.tsx";
import { InboxView } from "./inbox/View.tsx";
import { TraceView } from "./observe/Trace.tsx";
import { ObserveView } from "./observe/View.tsx";
import { ToolsView } from "./tools/List.tsx";
import { ServerView } from "./tools/One.tsx";
import { WorkflowsView } from "./workflows/List.tsx";
import { WorkflowView } from "./workflows/One.tsx";

export interface Page {
  /** First part of the path, and how many parts there are. */
  part: string;
  lengths: number[];
  view: ComponentType<{ path: string[] }>;
}

/** All views. Together they are smaller than what one more request would cost. */
export const pages: Page[] = [
  { part: "", lengths: [0], view: HomeView },
  { part: "executions", lengths: [1], view: ExecutionsView },
  { part: "executions", lengths: [2], view: FindView },
  { part: "executions", lengths: [3], view: ExecutionView },
  { part: "inbox", lengths: [1, 2], view: InboxView },
  { part: "workflows", lengths: [1], view: WorkflowsView },
  { part: "workflows", lengths: [2], view: WorkflowView },
  { part: "agents", lengths: [1], view: AgentsView },
  { part: "agents", lengths: [2], view: AgentView },
  { part: "tools", lengths: [1], view: ToolsView },
  { part: "tools", lengths: [2], view: ServerView },
  { part: "observe", lengths: [1], view: ObserveView },
  { part: "observe", lengths: [3], view: TraceView },
  { part: "compare", lengths: [1], view: CompareView },
  { part: "connect", lengths: [1], view: ConnectView },
];
