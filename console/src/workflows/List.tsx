import { get } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { useListKeys, useTitle } from "../lib/hooks.ts";
import { to } from "../lib/router.ts";
import { plural } from "../lib/text.ts";
import { Empty, Loading } from "../parts/Empty.tsx";
import { Problem } from "../parts/Problem.tsx";
import { Trend } from "../parts/Trend.tsx";
import { Outcomes } from "./Outcomes.tsx";
import { removedOf } from "./removed.ts";
import "./workflows.css";

export function WorkflowsView() {
  useTitle("Workflows");
  const workflows = useResource((signal) => get("/workflows", { signal }), []);
  const counts = useResource((signal) => get("/workflows/executions/counts", { signal }), []);
  const outcomes = useResource((signal) => get("/workflows/executions/outcomes", { signal }), []);
  const list = useListKeys();
  const removed = workflows.data && counts.data ? removedOf(counts.data.workflows, workflows.data) : [];
  return (
    <>
      <div class="heading">
        <h1>Workflows</h1>
      </div>
      {workflows.error && <Problem error={workflows.error} retry={workflows.reload} />}
      {workflows.loading && !workflows.data && <Loading what="workflows" />}
      {workflows.data?.length === 0 && (
        <Empty title="This server has no workflow" command="greenroom check">
          <p>Workflows are defined in the configuration, in files that it includes, or in Rust. The check finds mistakes in them before anything starts.</p>
        </Empty>
      )}
      <ul class="cards" ref={list}>
        {workflows.data?.map((workflow) => (
          <li key={workflow.id}>
            <a href={to("workflows", workflow.id)}>
              <b>
                <bdi>{workflow.name}</bdi>
              </b>{" "}
              <code class="quiet">{workflow.id}</code>
            </a>
            <p class="quiet">
              <bdi>{workflow.purpose}</bdi>
            </p>
            {outcomes.data && <Trend parts={outcomes.data.workflows.find((each) => each.workflowId === workflow.id)?.parts ?? []} period="24 hours" />}
            <p class="small quiet">
              {plural(workflow.stepsCount, "step")}, all stored executions: <Outcomes counts={counts.data?.workflows.find((each) => each.workflowId === workflow.id)} />
            </p>
          </li>
        ))}
        {removed.map((each) => (
          <li key={each.workflowId}>
            <a href={to("workflows", each.workflowId)}>
              <b>
                <bdi>{each.workflowId}</bdi>
              </b>{" "}
              <span class="quiet">removed</span>
            </a>
            <p class="quiet">The configuration no longer has it.</p>
            <p class="small quiet">
              <a href={`${to("executions")}?workflow=${encodeURIComponent(each.workflowId)}`}>Its executions</a>: <Outcomes counts={each} />
            </p>
          </li>
        ))}
      </ul>
      {counts.error && <p class="note">Without counts: {counts.error.message}</p>}
      {counts.data && !counts.data.isComplete && <p class="note">Not all executions were counted.</p>}
    </>
  );
}
