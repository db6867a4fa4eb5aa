import { get } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { to } from "../lib/router.ts";
import { number, plural } from "../lib/text.ts";
import { Id } from "../parts/Id.tsx";
import { Problem } from "../parts/Problem.tsx";
import { Time } from "../parts/Time.tsx";
import { Outcomes } from "./Outcomes.tsx";
import "./versions.css";

/** Rows that are shown at first. */
const shownMax = 6;

/** The versions of a workflow that executions began with: what is still open goes on with its own. */
export function Versions({ id }: { id: string }) {
  const read = useResource((signal) => get("/workflows/{id}/versions", { path: { id }, signal }), [id]);
  if (read.error) return <Problem error={read.error} retry={read.reload} />;
  if (!read.data) return null;
  const { versions, isComplete } = read.data;
  const open = versions.filter((version) => !version.isCurrent).reduce((sum, version) => sum + version.running + version.suspended, 0);
  return (
    <section>
      <h2>{versions.length === 1 ? "One version" : `${number(versions.length)} versions`}</h2>
      {open > 0 && <p class="small quiet">{plural(open, "open execution")} of earlier versions: each continues with the version that it began with.</p>}
      <ul class="versions">
        {versions.slice(0, shownMax).map((version) => (
          <li key={version.definitionHash}>
            <span class="line">
              <Id id={version.definitionHash} href={`${to("executions")}?${new URLSearchParams({ workflow: id, version: version.definitionHash })}`} max={17} />
              {version.isCurrent && <span class="current">current</span>}
              {version.firstStartAt && (
                <span class="quiet small">
                  first start <Time at={version.firstStartAt} />, last <Time at={version.lastStartAt} />
                </span>
              )}
            </span>
            <Outcomes counts={version} />
          </li>
        ))}
      </ul>
      {versions.length > shownMax && <p class="small quiet">{plural(versions.length - shownMax, "older version")} not shown.</p>}
      {!isComplete && <p class="small quiet">Of each status the last 2,000 executions were counted.</p>}
    </section>
  );
}
