import type { McpServer, McpToolChanged, Tool } from "../api/types.ts";
import { plural } from "../lib/text.ts";
import type { Kind } from "../parts/Status.tsx";

const states: Record<McpServer["state"], [Kind, string]> = {
  connecting: ["running", "connecting"],
  ready: ["completed", "connected"],
  failed: ["failed", "not connected"],
};

/** Returns the status that shows the state of its connection. */
export function stateOf({ state }: McpServer): [Kind, string] {
  return states[state];
}

/** A text that differs when the tools of the server may say something else: other ones, other changes, another connection. */
export function signOf({ since, state, tools, changed }: McpServer): string {
  return JSON.stringify([since, state, tools, changed.map(({ name, hash }) => [name, hash])]);
}

/** A tool of a server, with what is known of it. */
export interface ServerTool {
  /** Name under which agents and steps know it. */
  name: string;
  /** Name at the server. */
  own: string;
  /** Undefined for callers who may not list tools. */
  tool: Tool | undefined;
  /** False for one that the configuration names, and the server has not listed. */
  isListed: boolean;
  isChanged: boolean;
}

/** The tools of a server by name: those that it lists, and those that agents and steps name. */
export function toolsOf(server: McpServer, tools: readonly Tool[]): ServerTool[] {
  const known = new Map(tools.filter((tool) => belongsTo(tool.name, server)).map((tool) => [tool.name, tool]));
  const listed = new Set(server.tools);
  const changed = new Set(server.changed.map(({ name }) => name));
  return [...new Set([...listed, ...known.keys()])].sort().map((name) => {
    const own = name.slice(server.name.length + 1);
    return { name, own, tool: known.get(name), isListed: listed.has(name), isChanged: changed.has(own) };
  });
}

/** Tools that are of no MCP server. */
export function otherTools(servers: readonly McpServer[], tools: readonly Tool[]): Tool[] {
  return tools.filter((tool) => !servers.some((server) => belongsTo(tool.name, server)));
}

function belongsTo(tool: string, { name }: McpServer): boolean {
  return tool.startsWith(`${name}.`);
}

/** `12 tools · 2 left out`. What has changed is told apart from this: somebody has to do something about it. */
export function countsOf({ tools, leftOut }: McpServer): string {
  return [plural(tools.length, "tool"), leftOut.length > 0 && `${plural(leftOut.length, "tool")} left out`].filter(Boolean).join(" · ");
}

/**
 * A text that models read, for people who decide about it: invisible letters, and those that turn others
 * around, are written by their numbers.
 */
export function revealed(text: string): string {
  return text.replace(/[\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]|(?![\n\t])\p{Cc}/gu, (letter) => `\\u{${letter.codePointAt(0)?.toString(16)}}`);
}

const parts: Record<McpToolChanged["parts"][number], string> = {
  description: "description",
  parameters: "arguments",
  result: "result",
  annotations: "hints about its effects",
};

/** `its description and its arguments`. */
export function changedParts({ parts: changed }: McpToolChanged): string {
  const words = changed.map((part) => parts[part]);
  const last = words.pop() ?? "";
  return words.length > 0 ? `${words.join(", ")} and ${last}` : last;
}

/** Returns a sentence on calls of a changed tool: `on_change` of its server shows in the tools that are left out. */
export function whileChanged(server: McpServer, { name }: McpToolChanged): string {
  if (server.leftOut.some((each) => each.name === name)) return "It is left out until the change is accepted.";
  return "Until the change is accepted, models read what it was before, calls of agents wait for an approval, and other calls are refused.";
}

const unmatchedEffects: Record<string, string> = {
  approval: "Until one does, every call of an agent of any tool of this server needs approval.",
};

/** Returns a text that says what a pattern without a tool means. */
export function unmatchedText({ key, pattern }: McpServer["unmatched"][number]): string {
  return [`“${key}” in the configuration has the pattern ${pattern}, which matches no tool of the server.`, unmatchedEffects[key]].filter(Boolean).join(" ");
}
