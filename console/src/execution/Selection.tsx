import { get } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import type { ExecutionState, Outlook, SpanNode, WorkflowStep } from "../api/types.ts";
import { type Node, startedAt, typeWord } from "../graph/definition.ts";
import { bulkWorkflow } from "../lib/bulk.ts";
import { to } from "../lib/router.ts";
import { plural } from "../lib/text.ts";
import { Fact } from "../parts/Facts.tsx";
import { Id } from "../parts/Id.tsx";
import { JsonBox } from "../parts/Json.tsx";
import { Problem } from "../parts/Problem.tsx";
import { Status } from "../parts/Status.tsx";
import { Duration, Time, Until } from "../parts/Time.tsx";
import type { Model, Step, Wait, WaitEnd } from "./fold.ts";
import { Lanes } from "./Lanes.tsx";
import { OperationFacts } from "./OperationFacts.tsx";
import { type Ids, Value } from "./Value.tsx";
import "./selection.css";

interface SelectionProps {
  ids: Ids;
  model: Model;
  state: ExecutionState | undefined;
  outlook: Outlook | undefined;
  node: Node | undefined;
  declared: WorkflowStep | undefined;
  step: Step | undefined;
  /** The steps of the same place in all its rounds. */
  rounds: readonly Step[];
  progress: string | undefined;
  calls: readonly SpanNode[];
  isPast: boolean;
  /** True if this is a reversal, or a replay that began with a later step. */
  isKept: boolean;
  select: (path: string) => void;
}

/** The selected step; without one, the execution. */
export function Selection(props: SelectionProps) {
  const { node, step, model, state, select } = props;
  if (!node && !step) return <Whole ids={props.ids} model={model} state={state} isPast={props.isPast} />;
  return (
    <section class="selection" aria-label="Selected step">
      <header>
        <h2>
          <bdi>{step?.path ?? node?.name}</bdi>
        </h2>
        <button type="button" class="bare small" onClick={() => select("")}>
          whole execution
        </button>
      </header>
      {props.rounds.length > 1 && <Lanes steps={props.rounds} current={step?.path ?? ""} select={select} />}
      {step ? <StepFacts {...props} step={step} /> : <Unreached node={node} declared={props.declared} state={state} isKept={props.isKept} />}
    </section>
  );
}

function StepFacts({ ids, step, node, declared, progress, calls, state, outlook, model, isPast }: SelectionProps & { step: Step }) {
  const recorded = state?.steps.find((each) => each.path === step.path);
  const wake = isPast ? undefined : outlook?.waitsFor.find((wait) => wait.kind === "sleep" && wait.path === step.path)?.until;
  return (
    <>
      <dl class="facts">
        <Fact name="Status">
          <Status kind={wake && step.kind === "running" ? "sleeping" : step.kind} />
        </Fact>
        {node && (
          <Fact name="Kind">
            {typeWord(node.type)}
            {node.calls && (
              <>
                {" · "}
                <a href={to(node.callsAgent ? "agents" : "workflows", node.calls)}>{node.calls}</a>
              </>
            )}
          </Fact>
        )}
        {declared?.purpose && <Fact name="Purpose">{declared.purpose}</Fact>}
        <Fact name="Began">
          <Time at={step.from} />
        </Fact>
        <Fact name="Took">
          <Duration from={step.from} until={step.until ?? (isPast ? model.at : null)} />
        </Fact>
        {wake && (
          <Fact name="Sleeps">
            <Until at={wake} />
          </Fact>
        )}
        {recorded?.childExecutionId && node && <Started id={recorded.childExecutionId} {...startedAt(node, step.path)} />}
        {recorded?.generationId && (
          <Fact name="Generation">
            <Id id={recorded.generationId} max={24} copy />
          </Fact>
        )}
        <Fact name="Events">
          {step.first === step.last ? step.first : `${step.first} – ${step.last}`}
        </Fact>
      </dl>
      {step.error !== undefined && (
        <section>
          <h3>Error</h3>
          <pre class="errortext">{step.error}</pre>
        </section>
      )}
      {step.attempts.some((attempt) => attempt.error !== undefined) && <Attempts step={step} />}
      {step.waits.map((wait) => (
        <WaitFacts key={wait.from} ids={ids} wait={wait} />
      ))}
      {progress && step.until === null && (
        <section>
          <h3>Written so far, not recorded yet</h3>
          <p class="prose">{progress}</p>
        </section>
      )}
      {calls.length > 0 && <Usage calls={calls} />}
      {step.output !== undefined && <Value ids={ids} value={step.output} title="Output" />}
    </>
  );
}

function Attempts({ step }: { step: Step }) {
  return (
    <section>
      <h3>{plural(step.attempts.length, "attempt")}</h3>
      <ol class="attempts">
        {step.attempts.map((attempt) => (
          <li key={attempt.from}>
            <span class="quiet">{attempt.number}</span>
            <span>
              {attempt.error === undefined ? attempt.until ? "went on" : "runs" : <span class="bad">{attempt.error}</span>}
              <span class="quiet small">
                {attempt.errorKind && ` · ${attempt.errorKind}`}
                {" · "}
                <Duration from={attempt.from} until={attempt.until} />
              </span>
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

/** The execution that the step has started. */
function Started({ id, name, workflow }: { id: string; name: string; workflow: string | null }) {
  return (
    <Fact name={name}>
      <Id id={id} href={workflow === null ? to("executions", id) : to("executions", workflow, id)} max={24} />
    </Fact>
  );
}

const endings: Record<Exclude<WaitEnd, "answered">, string> = {
  completed: "the step completed",
  failed: "the attempt failed",
  skipped: "the step was skipped",
  cancelled: "the step was cancelled",
};

function WaitFacts({ ids, wait }: { ids: Ids; wait: Wait }) {
  return (
    <section class="wait">
      <h3>{wait.until === null ? "Waits for an answer" : "Waited for an answer"}</h3>
      <dl class="facts">
        <Fact name="Question">{wait.reason || "–"}</Fact>
        <Fact name="Since">
          <Time at={wait.from} />
        </Fact>
        {wait.deadline && (
          <Fact name="Deadline">
            <Time at={wait.deadline} />
          </Fact>
        )}
        {wait.until && wait.ended !== "answered" && (
          <Fact name="Ended">
            <Time at={wait.until} />
            {wait.ended && `: ${endings[wait.ended]}`}
          </Fact>
        )}
        {wait.until && wait.ended === "answered" && (
          <Fact name="Answered">
            <Time at={wait.until} /> {wait.byDeadline ? "by the deadline" : wait.answeredBy ? `by ${wait.answeredBy.id}${wait.answeredBy.verified ? "" : " (not verified)"}` : "by nobody who is known"}
          </Fact>
        )}
      </dl>
      {wait.payload !== undefined && <Value ids={ids} value={wait.payload} title="About" />}
      {wait.data !== undefined && <Value ids={ids} value={wait.data} title="Answer" />}
    </section>
  );
}

function Usage({ calls }: { calls: readonly SpanNode[] }) {
  const agents = calls.filter((call) => call.attributes["gen_ai.usage.input_tokens"] !== undefined);
  if (agents.length === 0) return null;
  return (
    <dl class="facts">
      {agents.map((call) => (
        <Fact key={call.spanId} name="Tokens">
          {String(call.attributes["gen_ai.usage.input_tokens"])} in, {String(call.attributes["gen_ai.usage.output_tokens"])} out
          {typeof call.attributes["entity.id"] === "string" && <> · {call.attributes["entity.id"]}</>}
        </Fact>
      ))}
    </dl>
  );
}

function Unreached({ node, declared, state, isKept }: { node: Node | undefined; declared: WorkflowStep | undefined; state: ExecutionState | undefined; isKept: boolean }) {
  const original = state?.reversalOf ?? state?.replayedFrom?.executionId;
  if (isKept && state && original) {
    return (
      <>
        <Status kind="skipped" text="kept" />
        <p>
          It did not run again: its output is that of <Id id={original} href={`${to("executions", state.workflowId, original)}?step=${encodeURIComponent(node?.key ?? "")}`} max={17} />.
        </p>
      </>
    );
  }
  return (
    <>
      <Status kind="none" />
      <p class="quiet">
        {node && typeWord(node.type)}
        {node?.calls && ` · ${node.calls}`}. It has not begun as far as this shows.
      </p>
      {declared?.purpose && <p>{declared.purpose}</p>}
      {declared?.resumeSchema !== undefined && <JsonBox value={declared.resumeSchema} title="Schema of the answer" />}
    </>
  );
}

function Whole({ ids, model, state, isPast }: { ids: Ids; model: Model; state: ExecutionState | undefined; isPast: boolean }) {
  const children = state?.steps.filter((step) => step.childExecutionId).length ?? 0;
  return (
    <section class="selection" aria-label="Execution">
      <header>
        <h2>Execution</h2>
      </header>
      {ids.id === bulkWorkflow && <OperationFacts ids={ids} model={model} />}
      <dl class="facts">
        <Fact name="Status">
          <Status kind={model.kind} />
        </Fact>
        <Fact name="Began">
          <Time at={model.from || state?.startAt} />
        </Fact>
        <Fact name="Took">
          <Duration from={model.from || state?.startAt} until={model.until ?? (isPast ? model.at : null)} />
        </Fact>
        {state?.userId && <Fact name="User">{state.userId}</Fact>}
        {state?.via && (
          <Fact name="Started through">
            <a href={`${to("executions")}?${new URLSearchParams({ via: state.via })}`}>
              <bdi>{state.via}</bdi>
            </a>
          </Fact>
        )}
        {state?.conversationId && <Fact name="Conversation">{state.conversationId}</Fact>}
        {state && children > 0 && (
          <Fact name="Started">
            <a href={`${to("executions")}?parent=${encodeURIComponent(state.executionId)}`}>{plural(children, "execution")}</a>
          </Fact>
        )}
        {!isPast && state?.usage && (
          <Fact name="Tokens">
            {state.usage.promptTokens} in, {state.usage.completionTokens} out
          </Fact>
        )}
        {state && (
          <Fact name="Trace">
            <Id id={state.traceId} href={to("observe", "traces", state.traceId)} max={17} copy />
          </Fact>
        )}
        {state && (
          <Fact name="Logs">
            <a href={`${to("observe")}?tab=logs&execution=${encodeURIComponent(state.executionId)}`}>of this execution</a>
          </Fact>
        )}
        {state && (
          <Fact name="Definition">
            <Id id={state.definitionHash} href={`${to("executions")}?${new URLSearchParams({ workflow: state.workflowId, version: state.definitionHash })}`} max={17} copy />
          </Fact>
        )}
      </dl>
      {model.error !== undefined && (
        <section>
          <h3>Error</h3>
          <pre class="errortext">{model.error}</pre>
        </section>
      )}
      {model.reason && <p>Reason: {model.reason}</p>}
      {ids.id !== bulkWorkflow && (
        <>
          {model.result !== undefined && <Value ids={ids} value={model.result} title="Result" />}
          <Given ids={ids} />
        </>
      )}
    </section>
  );
}

/** Shows the input and the context with which the execution was started. They do not change, so they are read once. */
function Given({ ids }: { ids: Ids }) {
  const state = useResource((signal) => get("/workflows/{id}/executions/{executionId}/state", { path: ids, signal }), [ids]);
  const given = state.data;
  if (state.error) return <Problem error={state.error} retry={state.reload} />;
  if (!given) return null;
  return (
    <>
      <JsonBox value={given.input} title="Input" />
      {typeof given.context === "object" && given.context !== null && Object.keys(given.context).length > 0 && <JsonBox value={given.context} title="Context" open={1} />}
    </>
  );
}
