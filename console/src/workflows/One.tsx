import { useMemo } from "preact/hooks";
import { get } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import type { ExecutionOutcomes, WorkflowStep } from "../api/types.ts";
import { nodesOf, typeWord } from "../graph/definition.ts";
import { mermaidOf, svgOf } from "../graph/export.ts";
import { Graph } from "../graph/Graph.tsx";
import { useTitle } from "../lib/hooks.ts";
import { param, setParams, to } from "../lib/router.ts";
import { firstLine, number } from "../lib/text.ts";
import { duration } from "../lib/time.ts";
import { bulkWorkflow } from "../lib/bulk.ts";
import { Copy } from "../parts/Copy.tsx";
import { Empty, Loading } from "../parts/Empty.tsx";
import { Fact } from "../parts/Facts.tsx";
import { Id } from "../parts/Id.tsx";
import { Problem } from "../parts/Problem.tsx";
import { Stale } from "../parts/Stale.tsx";
import { kindOf, Status } from "../parts/Status.tsx";
import { Time } from "../parts/Time.tsx";
import { Trend } from "../parts/Trend.tsx";
import { SchemaTable } from "../schema/SchemaTable.tsx";
import { download, downloadPng } from "../lib/download.ts";
import { Outcomes } from "./Outcomes.tsx";
import { Removed } from "./Removed.tsx";
import { Run } from "./Run.tsx";
import { Versions } from "./Versions.tsx";
import "./workflows.css";

export function WorkflowView({ path }: { path: string[] }) {
  const id = path[1] ?? "";
  const workflow = useResource((signal) => get("/workflows/{id}", { path: { id }, signal }), [id]);
  const last = useResource((signal) => get("/workflows/{id}/executions", { path: { id }, query: { limit: 8 }, signal }), [id]);
  const counts = useResource((signal) => get("/workflows/executions/counts", { query: { workflowId: id }, signal }), [id]);
  const outcomes = useResource((signal) => get("/workflows/executions/outcomes", { query: { workflowId: id }, signal }), [id]);
  const nodes = useMemo(() => nodesOf(workflow.data?.steps ?? []), [workflow.data]);
  useTitle(workflow.data?.name ?? id);
  const selected = param("step");
  if (workflow.error?.status === 404) return <Removed id={id} error={workflow.error} retry={workflow.reload} />;
  if (workflow.error && !workflow.data) return <Problem error={workflow.error} retry={workflow.reload} />;
  if (!workflow.data) return <Loading what="the workflow" />;
  const { data } = workflow;
  return (
    <div class="workflow">
      <div class="heading">
        <h1>
          <bdi>{data.name}</bdi>
        </h1>
        <Id id={data.id} max={40} copy />
        <Outcomes counts={counts.data?.total} />
      </div>
      {data.purpose && (
        <p class="purpose">
          <bdi>{data.purpose}</bdi>
        </p>
      )}
      <Stale of={workflow} />
      <div class="columns">
        <div>
          <Graph nodes={nodes} selected={selected} select={(key) => setParams({ step: key === selected ? "" : key })} label={`Graph of ${data.name}`} />
          <div class="actions exports">
            <button type="button" class="bare small" onClick={() => download(`${id}.svg`, "image/svg+xml", svgOf(nodes, data.name))}>
              SVG
            </button>
            <button type="button" class="bare small" onClick={() => void downloadPng(`${id}.png`, svgOf(nodes, data.name))}>
              PNG
            </button>
            <Copy text={() => mermaidOf(nodes)} label="Copy as Mermaid" class="bare small" />
          </div>
          <StepInfo step={stepAt(data.steps, selected)} />
        </div>
        <div class="definition">
          <h2>Definition</h2>
          <SchemaTable schema={data.inputSchema} title="Input" />
        </div>
        <div class="side">
          {data.id !== bulkWorkflow && <Run workflow={data} />}
          {outcomes.data && <LastDay outcomes={outcomes.data} />}
          <Versions id={id} />
          <section>
            <div class="note">
              <h2>Last executions</h2>
              <a href={`${to("executions")}?workflow=${encodeURIComponent(id)}`}>all</a>
            </div>
            {last.error && <Problem error={last.error} retry={last.reload} />}
            {last.data?.executions.length === 0 && (
              <Empty title="It has not run yet">
                <p>Start it with the form above.</p>
              </Empty>
            )}
            <ul class="lasts">
              {last.data?.executions.map((item) => (
                <li key={item.executionId}>
                  <Status kind={kindOf(item)} />
                  <Id id={item.executionId} href={to("executions", item.workflowId, item.executionId)} />
                  <bdi class={item.error ? "bad" : "quiet"}>{firstLine(item.error?.message ?? item.suspension?.reason ?? "", 80)}</bdi>
                  <Time at={item.startAt} />
                </li>
              ))}
            </ul>
          </section>
        </div>
      </div>
    </div>
  );
}

/** Outcomes of a day, and the steps that failed. */
function LastDay({ outcomes }: { outcomes: ExecutionOutcomes }) {
  const { total } = outcomes;
  const ended = total.completed + total.error + total.cancelled;
  if (ended === 0) return null;
  const { p50, p95 } = total.durationMs;
  return (
    <section>
      <h2>Last 24 hours</h2>
      <Trend parts={total.parts} period="24 hours" />
      {p50 !== null && p95 !== null && (
        <dl class="facts">
          <Fact name="Half took">up to {duration(p50)}</Fact>
          <Fact name="95 % took">up to {duration(p95)}, waits included</Fact>
        </dl>
      )}
      {!outcomes.isComplete && <p class="small quiet">Only the newest were counted.</p>}
      {total.failedSteps.length > 0 && (
        <ul class="failedsteps">
          {total.failedSteps.map((step) => (
            <li key={step.stepId}>
              <code>{step.stepId}</code> <span class="bad">failed {number(step.count)}×</span> <span class="quiet small">{percent(step.count, ended)} of what ended</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function percent(part: number, whole: number): string {
  const share = (100 * part) / whole;
  return share < 0.1 ? "less than 0.1 %" : `${share.toFixed(share < 10 ? 1 : 0)} %`;
}

function stepAt(steps: readonly WorkflowStep[], key: string): WorkflowStep | undefined {
  const [first, ...rest] = key.split("/");
  const step = steps.find((each) => each.id === first);
  return rest.length === 0 || !step ? step : stepAt(step.steps ?? [], rest.join("/"));
}

function StepInfo({ step }: { step: WorkflowStep | undefined }) {
  if (!step) return null;
  return (
    <section class="stepinfo" aria-label="Selected step">
      <h2>
        <bdi>{step.name}</bdi> <span class="quiet">{typeWord(step.type)}</span>
      </h2>
      {step.purpose && <p>{step.purpose}</p>}
      {step.agentId && (
        <p>
          Asks the agent <a href={to("agents", step.agentId)}>{step.agentId}</a>.
        </p>
      )}
      {step.workflowId && (
        <p>
          Runs the workflow <a href={to("workflows", step.workflowId)}>{step.workflowId}</a>.
        </p>
      )}
      {step.inputSchema !== undefined && <SchemaTable schema={step.inputSchema} title="Data" />}
      {step.outputSchema !== undefined && <SchemaTable schema={step.outputSchema} title="Output" />}
      {step.suspendSchema !== undefined && <SchemaTable schema={step.suspendSchema} title="What it shows when it asks" />}
      {step.resumeSchema !== undefined && <SchemaTable schema={step.resumeSchema} title="Answer" />}
    </section>
  );
}
