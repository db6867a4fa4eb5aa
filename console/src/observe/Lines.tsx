import { to } from "../lib/router.ts";
import { now, parse } from "../lib/time.ts";
import { visible } from "../parts/Json.tsx";

export interface Line {
  timestamp: string;
  level: string;
  text: string;
  component?: string | undefined;
  workflowId?: string | undefined;
  executionId?: string | undefined;
  agentId?: string | undefined;
}

/** Log records, one per line. */
export function Lines({ lines }: { lines: readonly Line[] }) {
  return (
    <ol class="loglines">
      {lines.map((line, index) => (
        <li key={`${line.timestamp} ${index}`} class={`level-${line.level}`}>
          <time class="quiet" dateTime={line.timestamp} title={line.timestamp}>
            {clock(line.timestamp)}
          </time>
          <span class="level">{line.level}</span>
          <span class="text">
            <bdi>{visible(line.text)}</bdi>{" "}
            {line.workflowId && line.executionId && <a href={to("executions", line.workflowId, line.executionId)}>execution</a>}{" "}
            {line.agentId && <a href={to("agents", line.agentId)}>{line.agentId}</a>} <span class="quiet component">{line.component}</span>
          </span>
        </li>
      ))}
    </ol>
  );
}

function clock(timestamp: string): string {
  const at = new Date(parse(timestamp) ?? 0);
  const time = `${at.toLocaleTimeString("en-GB")}.${String(at.getMilliseconds()).padStart(3, "0")}`;
  return at.toDateString() === new Date(now.peek()).toDateString() ? time : `${at.toLocaleDateString()} ${time}`;
}
