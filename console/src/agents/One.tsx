import { get } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import type { AgentDetail } from "../api/types.ts";
import { useTitle } from "../lib/hooks.ts";
import { param, setParams, to } from "../lib/router.ts";
import { Fact } from "../parts/Facts.tsx";
import { Id } from "../parts/Id.tsx";
import { Loading } from "../parts/Empty.tsx";
import { Problem } from "../parts/Problem.tsx";
import { Stale } from "../parts/Stale.tsx";
import { SchemaTable } from "../schema/SchemaTable.tsx";
import { ChatPane } from "./ChatPane.tsx";
import { History } from "./History.tsx";
import { Memory } from "./Memory.tsx";
import "./agents.css";

const tabs = { chat: "Chat", about: "About", history: "History", memory: "Conversations" };
type Tab = keyof typeof tabs;

export function AgentView({ path }: { path: string[] }) {
  const id = path[1] ?? "";
  const agent = useResource((signal) => get("/agents/{id}", { path: { id }, signal }), [id]);
  useTitle(agent.data?.name ?? id);
  const tab: Tab = param("tab") in tabs ? (param("tab") as Tab) : "chat";
  if (agent.error && !agent.data) return <Problem error={agent.error} retry={agent.reload} hrefOf={(meant) => to("agents", meant)} />;
  if (!agent.data) return <Loading what="the agent" />;
  const { data } = agent;
  const isStored = data.memory !== null;
  return (
    <>
      <div class="heading">
        <h1>
          <bdi>{data.name}</bdi>
        </h1>
        <Id id={data.id} max={40} copy />
        <div class="tabs" role="group" aria-label="Part">
          {(Object.keys(tabs) as Tab[])
            .filter((each) => each !== "memory" || isStored)
            .map((each) => (
              <button key={each} type="button" aria-pressed={tab === each} onClick={() => setParams({ tab: each === "chat" ? "" : each }, "push")}>
                {tabs[each]}
              </button>
            ))}
        </div>
      </div>
      <Stale of={agent} />
      {tab === "chat" && <ChatPane agentId={id} isStored={isStored} />}
      {tab === "about" && <About agent={data} />}
      {tab === "history" && <History agentId={id} />}
      {tab === "memory" && <Memory agentId={id} />}
    </>
  );
}

function About({ agent }: { agent: AgentDetail }) {
  return (
    <div class="aboutagent">
      <dl class="facts">
        {agent.description && <Fact name="Description">{agent.description}</Fact>}
        <Fact name="Model">{agent.model}</Fact>
        <Fact name="Now">{agent.status}</Fact>
        <Fact name="Remembers">{agent.memory ? `conversations; the model sees the newest ${agent.memory.config.contextLimit} messages` : "nothing"}</Fact>
        {agent.subAgents.length > 0 && (
          <Fact name="Delegates to">
            {agent.subAgents.map((sub) => (
              <div key={sub.id}>
                <a href={to("agents", sub.id)}>{sub.name}</a> <span class="quiet">{sub.description}</span>
              </div>
            ))}
          </Fact>
        )}
      </dl>
      <h2>Tools</h2>
      {agent.toolDetails.length === 0 && <p class="quiet">It has none.</p>}
      {agent.toolDetails.map((tool) => (
        <section key={tool.name} class="tooldetail">
          <p>
            <code>{tool.name}</code> <span class="prose quiet">{tool.description}</span>
          </p>
          <SchemaTable schema={tool.parameters} title="Arguments" />
        </section>
      ))}
    </div>
  );
}
