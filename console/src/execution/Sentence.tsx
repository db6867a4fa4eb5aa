import type { Awaited, ExecutionState, Outlook } from "../api/types.ts";
import { to } from "../lib/router.ts";
import { firstLine } from "../lib/text.ts";
import { visible } from "../parts/Json.tsx";
import { Since, Time, Until } from "../parts/Time.tsx";
import type { Model } from "./fold.ts";
import { foremost, whoAnswers } from "./words.ts";

/** Says what the execution does or waits for, as the server explains it. */
export function Sentence({ outlook, state, model, past }: { outlook: Outlook | undefined; state: ExecutionState | undefined; model: Model; past: boolean }) {
  if (past) {
    return (
      <p class="sentence">
        As it was <Time at={model.at} />: {[...model.steps.values()].filter((step) => step.kind === "completed").length} of {model.steps.size} begun steps were completed.
      </p>
    );
  }
  // While the explanation is older than the events it is not shown.
  if (!outlook || (model.until !== null && !outlook.ended)) return <p class="sentence quiet">…</p>;
  if (outlook.ended) return <Ended outlook={outlook} state={state} />;
  const wait = foremost(outlook);
  const compensates = outlook.compensates && <Compensates end={outlook.compensates} />;
  if (!wait) return <p class="sentence">{compensates ?? "Under way. Nothing is waited for."}</p>;
  const others = outlook.waitsFor.length - 1;
  return (
    <p class="sentence">
      {compensates}
      <Waits wait={wait} />
      {others > 0 && <span class="quiet"> {others === 1 ? "One more wait" : `${others} more waits`} beside it.</span>}
    </p>
  );
}

function Ended({ outlook, state }: { outlook: Outlook; state: ExecutionState | undefined }) {
  const { ended } = outlook;
  return (
    <p class="sentence">
      <bdi>{ended?.message}</bdi>
      {ended && (
        <span class="quiet">
          {" "}
          · <Time at={ended.at} />
        </span>
      )}
      {state?.cancelledBy && (
        <span class="quiet">
          {" "}
          · by <bdi>{state.cancelledBy.id}</bdi>
          {!state.cancelledBy.verified && " (not verified)"}
        </span>
      )}
    </p>
  );
}

/** Says what is undone, and why. */
function Compensates({ end }: { end: NonNullable<Outlook["compensates"]> }) {
  return (
    <>
      Compensating <Since at={end.at} />: <bdi>{visible(firstLine(end.message, 160))}</bdi>
      {end.cancelledBy && (
        <>
          , by <bdi>{end.cancelledBy.id}</bdi>
        </>
      )}
      .{" "}
    </>
  );
}

function Waits({ wait }: { wait: Awaited }) {
  const since = (
    <>
      {" "}
      <Since at={wait.since} />
    </>
  );
  const until = wait.until && (
    <>
      , <Until at={wait.until} />
    </>
  );
  const step = <b>{wait.path ?? wait.stepId}</b>;
  switch (wait.kind) {
    case "resume":
      return (
        <>
          <Quote text={reasonOf(wait)} /> waits for an answer at {step}
          {since}
          {until}. {whoAnswers(wait.asks?.[0]?.to ?? [])}.{wait.asks?.[0]?.claimedBy && ` ${wait.asks[0].claimedBy} is about to.`}
        </>
      );
    case "hold":
      return (
        <>
          Suspended by hand{wait.suspendedBy && <> by <bdi>{wait.suspendedBy.id}</bdi></>}
          {since}: <Quote text={wait.message.replace(/^paused: /, "")} />. A resume continues it.
        </>
      );
    case "sleep":
      return (
        <>
          Sleeps at {step}
          {since}
          {until}.
        </>
      );
    case "retry":
      return (
        <>
          {step} failed and is tried again
          {wait.until && (
            <>
              {" "}
              <Time at={wait.until} />
            </>
          )}
          : <span class="bad">{wait.error}</span>
        </>
      );
    case "child":
      return (
        <>
          {step} waits for{" "}
          {wait.child ? <a href={to("executions", wait.child.workflowId, wait.child.executionId)}>an execution of {wait.child.workflowId}</a> : "an execution"}
          {since}.
        </>
      );
    case "step":
      return (
        <>
          {step} runs{since}
          {(wait.attempt ?? 1) > 1 && `, attempt ${wait.attempt}`}.
        </>
      );
    default:
      return (
        <>
          <bdi>{wait.message}</bdi>
          {since}
          {until}. {wait.movedBy[0]?.how}
        </>
      );
  }
}

/** Words of a caller, apart from ours. */
function Quote({ text }: { text: string }) {
  return (
    <q title={text}>
      <bdi>{visible(firstLine(text, 160))}</bdi>
    </q>
  );
}

function reasonOf(wait: Awaited): string {
  return wait.message.replace(/^waits for a resume: /, "");
}
