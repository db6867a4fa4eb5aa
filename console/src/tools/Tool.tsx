import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Tool } from "../api/types.ts";
import { to } from "../lib/router.ts";
import { firstLine } from "../lib/text.ts";
import { Letters, visible } from "../parts/Json.tsx";
import { SchemaTable } from "../schema/SchemaTable.tsx";
import { revealed } from "./servers.ts";

/** A tool that folds: what it is for, who uses it, and its arguments. */
export function ToolRow({ name, tool, unknown = "", mark }: {
  name: string;
  /** Tool that is registered under its name, if the caller may see that. */
  tool: Tool | undefined;
  /** Reason for which nothing is known of it. */
  unknown?: string;
  mark?: ComponentChildren;
}) {
  // Schemas may be large, and tools many: what is folded is not drawn.
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="toolrow" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <code>
          <bdi>{visible(name)}</bdi>
        </code>
        {mark}
        <bdi class="quiet what">{revealed(firstLine(tool?.description ?? unknown, 200))}</bdi>
      </summary>
      {isOpen && (
        <div class="toolabout">
          {tool ? <About tool={tool} /> : <p class="quiet">{unknown || "This page has not read what it is, or may not."}</p>}
        </div>
      )}
    </details>
  );
}

function About({ tool }: { tool: Tool }) {
  return (
    <>
      {tool.description ? (
        <p>
          <Letters text={revealed(tool.description)} class="prose" />
        </p>
      ) : (
        <p class="quiet">It has no description.</p>
      )}
      {tool.agents.length > 0 && (
        <p class="small">
          Agents with it:{" "}
          {tool.agents.map((agent, index) => (
            <span key={agent}>
              {index > 0 && ", "}
              <a href={to("agents", agent)}>{agent}</a>
            </span>
          ))}
        </p>
      )}
      <SchemaTable schema={tool.parameters} title="Arguments" />
    </>
  );
}
