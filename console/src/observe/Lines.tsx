import type { ComponentChildren } from "preact";
import type { Names } from "../api/names.ts";
import { nameOf } from "../lib/named.ts";
import { to } from "../lib/router.ts";
import { middle } from "../lib/text.ts";
import { now, parse } from "../lib/time.ts";
import { visible } from "../parts/Json.tsx";

export interface Line {
  key: number;
  timestamp: string;
  level: string;
  text: string;
  component?: string | undefined;
  workflowId?: string | undefined;
  executionId?: string | undefined;
  agentId?: string | undefined;
}

/** Log records, one per line. `words` are marked in them. */
export function Lines({ lines, names, words = "" }: { lines: readonly Line[]; names: Names; words?: string }) {
  return (
    <ol class="loglines">
      {lines.map((line) => (
        <li key={line.key} class={`level-${line.level}`}>
          <time class="quiet" dateTime={line.timestamp} title={line.timestamp}>
            {clock(line.timestamp)}
          </time>
          <span class="level">{line.level}</span>
          <span class="text">
            <bdi>{marked(visible(line.text), words)}</bdi>{" "}
            {line.workflowId && line.executionId && (
              <a href={to("executions", line.workflowId, line.executionId)} title={`Execution ${line.executionId}`}>
                <bdi>{nameOf(names.workflows, line.workflowId)}</bdi> {middle(line.executionId, 12)}
              </a>
            )}{" "}
            {line.agentId && (
              <a href={to("agents", line.agentId)} title={`Agent ${line.agentId}`}>
                <bdi>{nameOf(names.agents, line.agentId)}</bdi>
              </a>
            )}{" "}
            <span class="quiet component">{line.component}</span>
          </span>
        </li>
      ))}
    </ol>
  );
}

function marked(text: string, words: string): ComponentChildren {
  const low = text.toLowerCase();
  // Some letters change their length: their places would be wrong.
  if (words === "" || low.length !== text.length) return text;
  const parts: ComponentChildren[] = [];
  let from = 0;
  for (let at = low.indexOf(words); at >= 0; at = low.indexOf(words, from)) {
    parts.push(text.slice(from, at), <mark>{text.slice(at, at + words.length)}</mark>);
    from = at + words.length;
  }
  return [...parts, text.slice(from)];
}

function clock(timestamp: string): string {
  const at = new Date(parse(timestamp) ?? 0);
  const time = `${at.toLocaleTimeString("en-GB")}.${String(at.getMilliseconds()).padStart(3, "0")}`;
  return at.toDateString() === new Date(now.peek()).toDateString() ? time : `${at.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${time}`;
}
