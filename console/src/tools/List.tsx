import { get } from "../api/client.ts";
import { useBeating, useResource } from "../api/resource.ts";
import type { McpServer, Tool } from "../api/types.ts";
import { useListKeys, useTitle } from "../lib/hooks.ts";
import { to } from "../lib/router.ts";
import { firstLine, plural } from "../lib/text.ts";
import { now } from "../lib/time.ts";
import { Empty, Loading } from "../parts/Empty.tsx";
import { visible } from "../parts/Json.tsx";
import { Problem } from "../parts/Problem.tsx";
import { Stale } from "../parts/Stale.tsx";
import { Status } from "../parts/Status.tsx";
import { Since } from "../parts/Time.tsx";
import { countsOf, otherTools, stateOf } from "./servers.ts";
import { ToolRow } from "./Tool.tsx";
import "../workflows/workflows.css";
import "./tools.css";

/** Milliseconds after which servers are read again, which is little; and tools, with all that they say. */
export const beatEvery = 5000;
export const toolsEvery = 60_000;

const example = `[mcp.files]
command = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "/srv/files"]
tools = ["read_*", "list_*", "write_file"]
approval = ["write_file"]`;

/** The MCP servers, and the tools that are of none. */
export function ToolsView() {
  useTitle("Tools");
  const servers = useBeating(Math.floor(now.value / beatEvery), (signal) => get("/tools/mcp", { signal }));
  // Those of servers are shown on their pages.
  const tools = useResource((signal) => get("/tools", { signal }), [], Math.floor(now.value / toolsEvery));
  const list = useListKeys();
  const others = tools.data && otherTools(servers.data ?? [], tools.data);
  return (
    <>
      <div class="heading">
        <h1>Tools</h1>
      </div>
      <section class="toolpart">
        <h2>MCP servers</h2>
        {servers.error && !servers.data && <Problem error={servers.error} retry={servers.reload} />}
        <Stale of={servers} />
        {servers.loading && !servers.data && <Loading what="MCP servers" />}
        {servers.data?.length === 0 && <NoServer />}
        <ul class="cards" ref={list}>
          {servers.data?.map((server) => (
            <li key={server.name}>
              <ServerCard server={server} />
            </li>
          ))}
        </ul>
      </section>
      <section class="toolpart">
        <h2>{servers.data?.length === 0 ? "Tools of this server" : "Other tools"}</h2>
        {tools.error && !tools.data && <Problem error={tools.error} retry={tools.reload} />}
        {tools.loading && !tools.data && <Loading what="tools" />}
        {others?.length === 0 && <p class="quiet">None. Tools that greenroom has itself, workflows, commands, requests and functions in Rust, stand here.</p>}
        <Others tools={others ?? []} />
      </section>
    </>
  );
}

function ServerCard({ server }: { server: McpServer }) {
  const [kind, text] = stateOf(server);
  return (
    <>
      <a href={to("tools", server.name)}>
        <b>
          <bdi>{server.name}</bdi>
        </b>
      </a>
      <p>
        <Status kind={kind} text={text} />{" "}
        <span class="quiet">
          <Since at={server.since} />
        </span>
      </p>
      {server.reason && (
        <p class="bad small">
          <bdi>{visible(firstLine(server.reason, 240))}</bdi>
        </p>
      )}
      {server.changed.length > 0 && (
        <p class="small">
          <Status kind="waiting" text={`${plural(server.changed.length, "tool")} changed`} />
        </p>
      )}
      <p class="small quiet">
        {server.transport === "program" ? "program" : "over HTTP"} · {countsOf(server)}
        {server.running > 0 && ` · ${plural(server.running, "call")} now`}
      </p>
    </>
  );
}

function Others({ tools }: { tools: readonly Tool[] }) {
  return (
    <ul class="toollist">
      {tools.map((tool) => (
        <li key={tool.name}>
          <ToolRow name={tool.name} tool={tool} />
        </li>
      ))}
    </ul>
  );
}

function NoServer() {
  return (
    <Empty title="This server uses no MCP server" command={example}>
      <p>Agents and steps use the tools of MCP servers like their own. This in the configuration starts one as a program; a server over HTTP has a <code>url</code> in place of the command.</p>
      <p>
        <code>docs/mcp.md</code> and <code>config.toml</code> explain every key. Changes need a restart.
      </p>
    </Empty>
  );
}
