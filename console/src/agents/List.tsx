import { get } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { useListKeys, useTitle } from "../lib/hooks.ts";
import { to } from "../lib/router.ts";
import { plural } from "../lib/text.ts";
import { Empty, Loading } from "../parts/Empty.tsx";
import { Problem } from "../parts/Problem.tsx";
import "../workflows/workflows.css";

export function AgentsView() {
  useTitle("Agents");
  const list = useListKeys();
  const agents = useResource((signal) => get("/agents", { signal }), []);
  return (
    <>
      <div class="heading">
        <h1>Agents</h1>
      </div>
      {agents.error && <Problem error={agents.error} retry={agents.reload} />}
      {agents.loading && !agents.data && <Loading what="agents" />}
      {agents.data?.length === 0 && (
        <Empty title="This server has no agent" command={'[agents.clerk]\ninstructions = "You help with orders."\nmodel = "offline"'}>
          <p>An agent answers, calls tools and remembers conversations. This in the configuration makes one, with a model that works offline:</p>
        </Empty>
      )}
      <ul class="cards" ref={list}>
        {agents.data?.map((agent) => (
          <li key={agent.id}>
            <a href={to("agents", agent.id)}>
              <b>
                <bdi>{agent.name}</bdi>
              </b>{" "}
              <code class="quiet">{agent.id}</code>
            </a>
            <p class="quiet">
              <bdi>{agent.description}</bdi>
            </p>
            <p class="small quiet">
              {agent.model} · {plural(agent.tools.length, "tool")}
              {agent.status === "working" && " · working now"}
            </p>
          </li>
        ))}
      </ul>
    </>
  );
}
