import { get } from "../api/client.ts";
import type { ApiError } from "../api/error.ts";
import { useResource } from "../api/resource.ts";
import { to } from "../lib/router.ts";
import { plural } from "../lib/text.ts";
import { Loading } from "../parts/Empty.tsx";
import { Problem } from "../parts/Problem.tsx";
import { Outcomes } from "./Outcomes.tsx";
import { Versions } from "./Versions.tsx";

/** A workflow that is not registered: what is stored of it, or that there is none. */
export function Removed({ id, error, retry }: { id: string; error: ApiError; retry: () => void }) {
  const counts = useResource((signal) => get("/workflows/executions/counts", { query: { workflowId: id }, signal }), [id]);
  if (counts.loading && !counts.data) return <Loading what="what is stored of it" />;
  const all = counts.data?.total.all ?? 0;
  if (all === 0) return <Problem error={error} retry={retry} hrefOf={(meant) => to("workflows", meant)} />;
  return (
    <div class="workflow removed">
      <div class="heading">
        <h1>
          <bdi>{id}</bdi>
        </h1>
        <span class="quiet">removed</span>
        <Outcomes counts={counts.data?.total} />
      </div>
      <p>
        The configuration no longer has this workflow, so it cannot be started. <a href={`${to("executions")}?workflow=${encodeURIComponent(id)}`}>{all === 1 ? "Its execution is" : `Its ${plural(all, "execution")} are`} stored.</a>
      </p>
      <Versions id={id} />
    </div>
  );
}
