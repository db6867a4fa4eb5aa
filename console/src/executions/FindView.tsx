import { useEffect } from "preact/hooks";
import { useWorkflows } from "../api/names.ts";
import { useResource } from "../api/resource.ts";
import { useTitle } from "../lib/hooks.ts";
import { nameOf } from "../lib/named.ts";
import { go, place, to } from "../lib/router.ts";
import { middle } from "../lib/text.ts";
import { Empty, Loading } from "../parts/Empty.tsx";
import { Id } from "../parts/Id.tsx";
import { Problem } from "../parts/Problem.tsx";
import { kindOf, Status } from "../parts/Status.tsx";
import { Time } from "../parts/Time.tsx";
import { findExecution } from "./find.ts";

/** Others that are named where an id is only the begin of theirs. */
const othersShown = 10;

/** Goes to the execution that an address names by its id alone. */
export function FindView({ path }: { path: string[] }) {
  const id = path[1] ?? "";
  useTitle(id);
  const search = useResource((signal) => findExecution(id, signal), [id]);
  const workflows = useWorkflows();
  const execution = search.data?.execution;
  useEffect(() => {
    if (execution) go(to("executions", execution.workflowId, execution.executionId) + queryOfPage(), "replace");
  }, [execution]);
  if (search.error) return <Problem error={search.error} retry={search.reload} />;
  if (!search.data || execution) return <Loading what="the execution" />;
  const { others } = search.data;
  return (
    <Empty title={`There is no execution ${middle(id, 40)}`} isPage>
      {others.length === 0 && <p>None that you may see has this id, or one that begins with it. Retention may have deleted it.</p>}
      {others.length > 0 && (
        <>
          <p>{others.length === 1 ? "The id of this one begins with it:" : "The ids of these begin with it:"}</p>
          <ul>
            {others.slice(0, othersShown).map((item) => (
              <li key={item.executionId} class="inline-parts">
                <Status kind={kindOf(item)} />
                <Id id={item.executionId} href={to("executions", item.workflowId, item.executionId)} max={40} />
                <bdi class="quiet">{nameOf(workflows, item.workflowId)}</bdi>
                <Time at={item.startAt} />
              </li>
            ))}
          </ul>
        </>
      )}
      <p>
        {others.length > othersShown && (
          <>
            There are more: <a href={`${to("executions")}?id=${encodeURIComponent(id)}`}>all of them</a>, or{" "}
          </>
        )}
        <a href={to("executions")}>see all executions</a>.
      </p>
    </Empty>
  );
}

/** The step and the event that the address names stay in it. */
function queryOfPage(): string {
  const text = place.peek().query.toString();
  return text && `?${text}`;
}
