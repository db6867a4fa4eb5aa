import { get } from "../api/client.ts";
import { useWorkflows } from "../api/names.ts";
import { useResource } from "../api/resource.ts";
import { Failures, wordsOfCounts } from "../executions/BulkOutcome.tsx";
import { nameOf } from "../lib/named.ts";
import { to } from "../lib/router.ts";
import { number } from "../lib/text.ts";
import { Fact } from "../parts/Facts.tsx";
import { Id } from "../parts/Id.tsx";
import { Json } from "../parts/Json.tsx";
import { Problem } from "../parts/Problem.tsx";
import type { Model } from "./fold.ts";
import { countsOf, type Operation, sentenceOf } from "./operation.ts";
import type { Ids } from "./Value.tsx";

/** Names and ids that are shown; the input has all. */
const shownMax = 10;

/** Shows what an operation on many executions does, for which user, and its outcome. */
export function OperationFacts({ ids, model }: { ids: Ids; model: Model }) {
  const state = useResource((signal) => get("/workflows/{id}/executions/{executionId}/state", { path: ids, signal }), [ids]);
  const workflows = useWorkflows();
  if (state.error) return <Problem error={state.error} retry={state.reload} />;
  if (!state.data) return null;
  const operation = state.data.input as unknown as Operation;
  const { action, executionIds = [], allowed = [] } = operation;
  const counts = countsOf(model);
  return (
    <>
      <p>{sentenceOf(operation, state.data.startAt, workflows)}</p>
      <dl class="facts">
        {counts && <Fact name={model.result === undefined ? "So far" : "Outcome"}>{wordsOfCounts(counts, action)}</Fact>}
        {operation.reason && (
          <Fact name="Reason">
            <bdi>{operation.reason}</bdi>
          </Fact>
        )}
        {operation.by && (
          <Fact name="Asked by">
            <bdi>{operation.by.id}</bdi>
            {!operation.by.verified && " (not verified)"}
          </Fact>
        )}
        {operation.visibleTo && (
          <Fact name="Only of">
            <bdi>{operation.visibleTo}</bdi>
          </Fact>
        )}
        {allowed.length > 0 && <Fact name="In">{listed(allowed.map((id) => nameOf(workflows, id)))}</Fact>}
        {executionIds.length > 0 && (
          <Fact name="Named">
            {executionIds.slice(0, shownMax).map((id) => (
              <div key={id}>
                <Id id={id} href={to("executions", id)} max={24} />
              </div>
            ))}
            {executionIds.length > shownMax && <span class="quiet">and {number(executionIds.length - shownMax)} more</span>}
          </Fact>
        )}
      </dl>
      {counts && counts.failures.length > 0 && (
        <section>
          <h3>Failures</h3>
          <Failures counts={counts} />
        </section>
      )}
      <details>
        <summary class="quiet">Input as JSON</summary>
        <Json value={state.data.input} />
      </details>
    </>
  );
}

function listed(names: readonly string[]): string {
  const rest = names.length - shownMax;
  return names.slice(0, shownMax).join(", ") + (rest > 0 ? ` and ${number(rest)} more` : "");
}
