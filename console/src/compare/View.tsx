import { useState } from "preact/hooks";
import { get } from "../api/client.ts";
import { useWorkflows } from "../api/names.ts";
import { type Resource, useResource } from "../api/resource.ts";
import type { ExecutionState } from "../api/types.ts";
import { useTitle } from "../lib/hooks.ts";
import { nameOf } from "../lib/named.ts";
import { param, to } from "../lib/router.ts";
import { number, plural } from "../lib/text.ts";
import { Empty, Loading } from "../parts/Empty.tsx";
import { Id } from "../parts/Id.tsx";
import { JsonBox } from "../parts/Json.tsx";
import { Problem } from "../parts/Problem.tsx";
import { type Kind, kindOf, Status } from "../parts/Status.tsx";
import { Duration, Time } from "../parts/Time.tsx";
import { align, isSame, type Pair } from "./align.ts";
import "./compare.css";

/** Steps that are listed. */
const pairsMax = 500;

/** Two executions side by side: inputs, the way that each took, outputs and times. */
export function CompareView() {
  useTitle("Compare");
  const left = useExecution(param("a"));
  const right = useExecution(param("b"));
  const workflows = useWorkflows();
  const [onlyDifferent, setOnly] = useState(true);
  const error = left.error ?? right.error;
  if (!param("a") || !param("b")) {
    return (
      <Empty title="Choose two executions" isPage>
        <p>
          In the <a href={to("executions")}>list of executions</a>, choose two of them, then “Compare”.
        </p>
      </Empty>
    );
  }
  if (error) return <Problem error={error} />;
  if (!left.data || !right.data) return <Loading what="both executions" />;
  const [a, b] = [left.data, right.data];
  const pairs = align(a.steps, b.steps);
  const different = pairs.filter((pair) => pair.differs !== null);
  const shown = onlyDifferent ? different : pairs;
  return (
    <div class="compare">
      <div class="heading">
        <h1>Compare</h1>
        {a.definitionHash !== b.definitionHash && <span class="quiet">They ran with different definitions.</span>}
      </div>
      <div class="two">
        <Side state={a} name={nameOf(workflows, a.workflowId)} />
        <Side state={b} name={nameOf(workflows, b.workflowId)} />
      </div>
      <Values title="Input" left={a.input} right={b.input} />
      <section>
        <div class="note">
          <h2>Steps</h2>
          <span>
            {different.length} of {plural(pairs.length, "step")} differ
          </span>
          <label>
            <input type="checkbox" checked={onlyDifferent} onChange={(event) => setOnly(event.currentTarget.checked)} /> only these
          </label>
        </div>
        <ul>
          {shown.slice(0, pairsMax).map((pair) => (
            <li key={pair.path}>
              <StepPair pair={pair} />
            </li>
          ))}
        </ul>
        {shown.length > pairsMax && <p class="note">The first {number(pairsMax)}; {plural(shown.length - pairsMax, "more step")} not shown.</p>}
      </section>
      <Values title="Result" left={a.result ?? a.error} right={b.result ?? b.error} />
    </div>
  );
}

/** The state of an execution that the address names as `workflow/execution`. */
function useExecution(name: string): Resource<ExecutionState | undefined> {
  const at = name.indexOf("/");
  const path = { id: name.slice(0, at), executionId: name.slice(at + 1) };
  return useResource(async (signal) => (name ? get("/workflows/{id}/executions/{executionId}/state", { path, signal }) : undefined), [name]);
}

function Side({ state, name }: { state: ExecutionState; name: string }) {
  return (
    <div>
      <p>
        <Id id={state.executionId} href={to("executions", state.workflowId, state.executionId)} max={28} />
      </p>
      <p class="quiet">
        <Status kind={kindOf(state)} /> <span title={state.workflowId}>{name}</span> · <Time at={state.startAt} /> · <Duration from={state.startAt} until={state.endAt} rough />
      </p>
    </div>
  );
}

const kinds: Record<string, Kind> = { running: "running", suspended: "waiting", sleeping: "sleeping", completed: "completed", failed: "failed", skipped: "skipped", cancelled: "cancelled" };

function StepPair({ pair }: { pair: Pair }) {
  const cell = (step: Pair["left"]) => (step ? <Status kind={kinds[step.status] ?? "none"} /> : <Status kind="none" />);
  const time = (step: Pair["left"]) => step && <Duration from={step.startedAt} until={step.endedAt} rough />;
  return (
    <details class="pair">
      <summary>
        <bdi>{pair.path}</bdi>
        <span>
          {cell(pair.left)} <span class="quiet small">{time(pair.left)}</span>
        </span>
        <span>
          {cell(pair.right)} <span class="quiet small">{time(pair.right)}</span>
        </span>
      </summary>
      <div class="two">
        <JsonBox value={pair.left?.error ?? pair.left?.output ?? null} title="Output" />
        <JsonBox value={pair.right?.error ?? pair.right?.output ?? null} title="Output" />
      </div>
    </details>
  );
}

function Values({ title, left, right }: { title: string; left: unknown; right: unknown }) {
  return (
    <section>
      <div class="note">
        <h2>{title}</h2>
        <span>{isSame(left, right) ? "the same" : "differs"}</span>
      </div>
      <div class="two">
        <JsonBox value={left} title="First" />
        <JsonBox value={right} title="Second" />
      </div>
    </section>
  );
}
