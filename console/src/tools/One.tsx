import { useState } from "preact/hooks";
import { get } from "../api/client.ts";
import { useBeating, useResource } from "../api/resource.ts";
import type { McpServer, Tool } from "../api/types.ts";
import { boot } from "../lib/boot.ts";
import { useTitle } from "../lib/hooks.ts";
import { to } from "../lib/router.ts";
import { number, plural } from "../lib/text.ts";
import { now } from "../lib/time.ts";
import { ActDialog, type Call, whyNot } from "../parts/Act.tsx";
import { Empty, Loading } from "../parts/Empty.tsx";
import { Fact } from "../parts/Facts.tsx";
import { Letters, visible } from "../parts/Json.tsx";
import { Problem } from "../parts/Problem.tsx";
import { Stale } from "../parts/Stale.tsx";
import { Status } from "../parts/Status.tsx";
import { Since } from "../parts/Time.tsx";
import { Changed } from "./Changed.tsx";
import { beatEvery, toolsEvery } from "./List.tsx";
import { signOf, stateOf, toolsOf, unmatchedText } from "./servers.ts";
import { ToolRow } from "./Tool.tsx";
import "./tools.css";

/** One MCP server: its connection, what has changed, its tools, and those that are left out. */
export function ServerView({ path }: { path: string[] }) {
  const name = path[1] ?? "";
  useTitle(name);
  const servers = useBeating(Math.floor(now.value / beatEvery), (signal) => get("/tools/mcp", { signal }));
  const server = servers.data?.find((each) => each.name === name);
  // The list has all tools of all servers, with their schemas: it is read again when something says that it differs.
  const sign = server && signOf(server);
  const version = sign && `${sign} ${Math.floor(now.value / toolsEvery)}`;
  const tools = useResource(async (signal) => (version === undefined ? undefined : get("/tools", { signal })), [name], version);
  if (servers.error && !servers.data) return <Problem error={servers.error} retry={servers.reload} />;
  if (!servers.data) return <Loading what="the MCP server" />;
  if (!server) {
    return (
      <Empty title="There is no such MCP server" isPage>
        <p>
          The configuration has none with the name <bdi>{name}</bdi>. <a href={to("tools")}>All servers</a>
        </p>
      </Empty>
    );
  }
  const reload = (): void => {
    servers.reload();
    tools.reload();
  };
  return (
    <div class="mcpserver">
      <Heading server={server} reload={reload} />
      <Stale of={servers} />
      <Connection server={server} />
      {server.unmatched.map((each) => (
        <p key={each.key + each.pattern} class="small attention">
          <bdi>{unmatchedText(each)}</bdi>
        </p>
      ))}
      {server.changed.length > 0 && <Changed server={server} tools={tools.data ?? []} reload={reload} />}
      <Tools server={server} tools={tools.data ?? []} />
      {tools.error && !tools.data && <p class="note">Without descriptions: {tools.error.message}</p>}
      {server.leftOut.length > 0 && <LeftOut server={server} />}
    </div>
  );
}

function Heading({ server, reload }: { server: McpServer; reload: () => void }) {
  const [isOpen, setOpen] = useState(false);
  const [kind, text] = stateOf(server);
  const call: Call = { method: "POST", path: `/tools/mcp/${encodeURIComponent(server.name)}/restart` };
  const why = whyNot(call.path);
  const close = (): void => setOpen(false);
  return (
    <>
      <div class="heading">
        <h1>
          <bdi>{server.name}</bdi>
        </h1>
        <Status kind={kind} text={text} />
        <span class="quiet">
          <Since at={server.since} />
        </span>
        <div class="actions">
          <button type="button" class="button" disabled={why !== ""} title={why} onClick={() => setOpen(true)}>
            Connect again
          </button>
        </div>
      </div>
      {why !== "" && !boot.readOnly && <p class="note refused">Connect again: {why}.</p>}
      {isOpen && (
        <ActDialog
          title={`Connect ${server.name} again`}
          verb="Connect again"
          danger={server.running > 0}
          call={call}
          close={close}
          done={() => {
            close();
            reload();
          }}
        >
          <p class="quiet">
            {server.transport === "program" ? "The program is ended and started again." : "The connection ends, and another one begins."}{" "}
            {server.running > 0 ? `${plural(server.running, "call")} that ${server.running === 1 ? "is" : "are"} being made will be interrupted, and may have happened.` : "No call is being made."}
          </p>
        </ActDialog>
      )}
    </>
  );
}

function Connection({ server }: { server: McpServer }) {
  const ended = server.calls > 0 ? `${number(server.calls)}, of which ${number(server.failures)} failed` : "none";
  return (
    <>
      {server.reason && (
        <section>
          <h2>Why there is no connection</h2>
          <p class="errortext">
            <Letters text={server.reason} class="prose" />
          </p>
          <p class="quiet small">It is tried again by itself, ever more rarely. Calls fail until then.</p>
        </section>
      )}
      <dl class="facts">
        <Fact name="Reached">{server.transport === "program" ? "as a program that greenroom starts" : "over HTTP"}</Fact>
        {server.protocol && <Fact name="Protocol">{server.protocol}</Fact>}
        <Fact name="Calls">
          {ended}
          {server.running > 0 && `; ${number(server.running)} now`}
        </Fact>
        <Fact name="Lost connections">{server.lost === 0 ? "none" : number(server.lost)}</Fact>
      </dl>
      <p class="quiet small">Calls and lost connections are those since this greenroom was started.</p>
    </>
  );
}

function Tools({ server, tools }: { server: McpServer; tools: readonly Tool[] }) {
  const shown = toolsOf(server, tools);
  return (
    <section class="toolpart">
      <h2>Tools</h2>
      {shown.length === 0 && <p class="quiet">{server.state === "ready" ? "The server offers none that the configuration lets through." : "They are known once it is connected."}</p>}
      <ul class="toollist">
        {shown.map(({ name, tool, isListed, isChanged }) => (
          <li key={name}>
            <ToolRow
              name={name}
              tool={isListed || isChanged ? tool : undefined}
              unknown={isListed || isChanged ? "" : "Agents or steps name it, and the server has not listed it."}
              mark={isChanged ? <Status kind="waiting" text="changed" /> : !isListed && <Status kind="none" text={server.state === "ready" ? "not offered" : "not seen yet"} />}
            />
          </li>
        ))}
      </ul>
    </section>
  );
}

function LeftOut({ server }: { server: McpServer }) {
  return (
    <section class="toolpart">
      <h2>Left out</h2>
      <dl class="facts leftout">
        {server.leftOut.map(({ name, reason }, index) => (
          <Fact key={name + String(index)} name={visible(name)}>
            <Letters text={reason} class="prose" />
          </Fact>
        ))}
      </dl>
    </section>
  );
}
