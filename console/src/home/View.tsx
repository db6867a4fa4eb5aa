import type { ComponentChildren } from "preact";
import { get, send } from "../api/client.ts";
import { useWorkflows } from "../api/names.ts";
import { useBeating } from "../api/resource.ts";
import type { McpServer } from "../api/types.ts";
import { inbox, read as readInbox } from "../inbox/store.ts";
import { boot } from "../lib/boot.ts";
import { useTitle } from "../lib/hooks.ts";
import { nameOf } from "../lib/named.ts";
import { to } from "../lib/router.ts";
import { firstLine, number, plural } from "../lib/text.ts";
import { now } from "../lib/time.ts";
import { Loading } from "../parts/Empty.tsx";
import { Id } from "../parts/Id.tsx";
import { visible } from "../parts/Json.tsx";
import { Problem } from "../parts/Problem.tsx";
import { type Kind, Mark, Status } from "../parts/Status.tsx";
import { Time } from "../parts/Time.tsx";
import { Trend } from "../parts/Trend.tsx";
import { First } from "./First.tsx";
import { Pulse, WaitsLongest } from "./Pulse.tsx";
import "./home.css";

const day = 86_400_000;

/** Shows within ten seconds what is broken. */
export function HomeView() {
  useTitle("");
  // Read again every ten seconds while the page is seen: the API has no subscription to these.
  const beat = Math.floor(now.value / 10_000);
  const counts = useBeating(beat, (signal) => get("/workflows/executions/counts", { signal }));
  const failures = useBeating(beat, (signal) => get("/workflows/executions", { query: { status: "error", endedFrom: new Date(Date.now() - day).toISOString(), limit: 10 }, signal }));
  const outcomes = useBeating(beat, (signal) => get("/workflows/executions/outcomes", { query: { parts: 48 }, signal }));
  const status = useBeating(beat, (signal) => get("/observability/status", { signal }));
  // A caller who may not look at them does without.
  const servers = useBeating(beat, (signal) => get("/tools/mcp", { signal }));
  const workflows = useWorkflows();
  const { asks, more, error: inboxError, refused } = inbox.value;
  const failed = failures.data?.executions;
  const error = counts.error ?? failures.error ?? outcomes.error ?? status.error ?? inboxError;
  const retry = (): void => {
    for (const each of [counts, failures, outcomes, status]) if (each.error) each.reload();
    if (inboxError) void readInbox();
  };
  return (
    <div class="home">
      <div class="heading">
        <h1>{boot.title === "greenroom" ? "Home" : boot.title}</h1>
        <Health environment={status.data?.environment} storage={status.data?.storage} beat={beat} />
      </div>
      {error && <Problem error={error} retry={retry} />}
      <div class="numbers">
        <Figure kind="waiting" href={to("inbox")} text="waiting for a person" value={refused ? "–" : inbox.value.at > 0 ? number(asks.size) + (more ? "+" : "") : null} />
        <Figure kind="failed" href={`${to("executions")}?status=error&range=24h`} text="failed in 24 hours" value={outcomes.data ? number(outcomes.data.total.error) + (outcomes.data.countedFrom.error === outcomes.data.from ? "" : "+") : null} />
        <Figure kind="running" href={`${to("executions")}?status=running`} text="running" value={counts.data ? number(counts.data.total.running) : null} />
        <Figure kind="retrying" href={to("observe")} text="stuck" hint="Running executions that nothing can continue: no timer, no step, no answer" value={status.data ? number(status.data.stuck.count) : null} />
      </div>
      {counts.data && !counts.data.isComplete && <p class="note">Not all executions were counted.</p>}
      {status.data && status.data.stuck.executions.length > 0 && (
        <section>
          <h2>Stuck: nothing can move these</h2>
          <ul class="lines">
            {status.data.stuck.executions.slice(0, 10).map((each) => (
              <li key={each.executionId}>
                <Id id={each.executionId} {...(each.workflowId ? { href: to("executions", each.workflowId, each.executionId) } : {})} />
                <bdi title={each.workflowId ?? ""}>{nameOf(workflows, each.workflowId ?? "")}</bdi>
                <bdi class="bad">{each.cause}</bdi>
              </li>
            ))}
          </ul>
        </section>
      )}
      <Servers servers={servers.data ?? []} />
      {counts.data?.total.all === 0 ? (
        <First />
      ) : (
        <section>
          <div class="note">
            <h2>Last failures</h2>
            <a href={`${to("executions")}?status=error`}>all</a>
          </div>
          {!failed && !failures.error && <Loading what="failures" />}
          {failed?.length === 0 && (
            <p class="quiet">
              <Status kind="completed" text="None in the last 24 hours." />
            </p>
          )}
          <ul class="lines">
            {failed?.map((row) => (
              <li key={row.executionId}>
                <Id id={row.executionId} href={to("executions", row.workflowId, row.executionId)} />
                <bdi title={row.workflowId}>{nameOf(workflows, row.workflowId)}</bdi>
                <bdi class="bad" title={row.error?.message}>
                  {row.error?.stepId && `${row.error.stepId}: `}
                  {firstLine(row.error?.message ?? "failed")}
                </bdi>
                <Time at={row.endAt} />
              </li>
            ))}
          </ul>
        </section>
      )}
      <WaitsLongest workflows={workflows} />
      {outcomes.data && counts.data && counts.data.total.all > 0 && (
        <section>
          <div class="note">
            <h2>Outcomes</h2>
            <a href={to("workflows")}>by workflow</a>
          </div>
          <Trend parts={outcomes.data.total.parts} period="24 hours" wide />
          {!outcomes.data.isComplete && <p class="note">Only the newest 5,000 of each outcome were counted.</p>}
        </section>
      )}
      {counts.data && counts.data.total.all > 0 && <Pulse />}
    </div>
  );
}

/** MCP servers about which somebody has to do something. */
function Servers({ servers }: { servers: readonly McpServer[] }) {
  const listed = servers.filter(({ state, changed }) => state === "failed" || changed.length > 0);
  if (listed.length === 0) return null;
  return (
    <section>
      <div class="note">
        <h2>MCP servers</h2>
        <a href={to("tools")}>all</a>
      </div>
      <ul class="lines">
        {listed.map((server) => (
          <li key={server.name}>
            <a href={to("tools", server.name)}>
              <bdi>{server.name}</bdi>
            </a>
            {server.state === "failed" ? <Status kind="failed" text="not connected" /> : <Status kind="waiting" text={`${plural(server.changed.length, "tool")} changed`} />}
            <bdi class="bad" title={server.reason}>
              {visible(firstLine(server.reason ?? ""))}
            </bdi>
            {server.state === "failed" && <Time at={server.since} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Figure({ kind, href, text, hint, value }: { kind: Kind; href: string; text: string; hint?: string; value: string | null }) {
  const isZero = value === "0";
  return (
    <a class={`figure ${isZero ? "zero" : kind}`} href={href} title={hint}>
      <span class="value">{value ?? "…"}</span>
      <span>
        <Mark kind={kind} /> {text}
      </span>
    </a>
  );
}

function Health({ environment, storage, beat }: { environment: string | undefined; storage: string | undefined; beat: number }): ComponentChildren {
  const ready = useBeating(beat, async (signal) => {
    const response = await send("GET", "/readyz", { signal });
    return { isReady: response.ok, text: (await response.text()).trim() };
  });
  const parts = [boot.version && `version ${boot.version}`, environment, storage && `stored in ${storage}`].filter(Boolean).join(" · ");
  return (
    <p class="health">
      {ready.data ? <Status kind={ready.data.isReady ? "completed" : "failed"} text={firstLine(ready.data.text)} /> : <span class="quiet">…</span>}
      <span class="quiet">{parts}</span>
      {ready.data && ready.data.text.includes("\n") && <span class="quiet">{plural(ready.data.text.split("\n").length - 1, "more line")} at /readyz</span>}
    </p>
  );
}
