import { useEffect, useState } from "preact/hooks";
import { get, send } from "../api/client.ts";
import type { ApiError } from "../api/error.ts";
import { asError, useResource } from "../api/resource.ts";
import { boot } from "../lib/boot.ts";
import { useTitle } from "../lib/hooks.ts";
import { to } from "../lib/router.ts";
import { duration } from "../lib/time.ts";
import { whyNot } from "../parts/Act.tsx";
import { Loading, Snippet } from "../parts/Empty.tsx";
import { Problem } from "../parts/Problem.tsx";
import { type Answer, attempt } from "./attempt.ts";
import { type Server, type Snippet as Item, snippets, type Try } from "./snippets.ts";
import "./connect.css";

/** Ready commands and code for this server. */
export function ConnectView() {
  useTitle("Connect");
  const server = useResource(read, []);
  return (
    <div class="connect">
      <div class="heading">
        <h1>Connect</h1>
      </div>
      <p class="quiet">
        Commands and code with the address of this server, for what it has switched on.
        {boot.auth && " It wants tokens: the commands take yours from the variable TOKEN of the shell."}
      </p>
      {server.error && <Problem error={server.error} retry={server.reload} />}
      {server.loading && !server.data && <Loading what="what this server has" />}
      {server.data && snippets(server.data).map((item) => <One key={item.title} item={item} workflow={server.data?.workflow?.id ?? ""} />)}
    </div>
  );
}

async function read(signal: AbortSignal): Promise<Server> {
  const [workflows, agents, isExporting, hasMetrics] = await Promise.all([
    get("/workflows", { signal }),
    get("/agents", { signal }),
    // What this caller may not see is left out.
    get("/observability/status", { signal }).then((status) => status.isTelemetryEnabled, () => null),
    send("GET", "/metrics", { signal }).then((response) => response.ok),
  ]);
  const first = workflows.find((each) => each.id === "expense-approval") ?? workflows[0];
  const [workflow, last] = first ? await Promise.all([get("/workflows/{id}", { path: { id: first.id }, signal }), get("/workflows/{id}/executions", { path: { id: first.id }, query: { limit: 1 }, signal })]) : [];
  return { origin: location.origin, auth: boot.auth, workflow, executionId: last?.executions[0]?.executionId, agent: agents[0], hasMetrics, isExporting };
}

function One({ item, workflow }: { item: Item; workflow: string }) {
  return (
    <section>
      <h2>{item.title}</h2>
      {item.steps.map(({ text, code }) => (
        <div key={code} class="step">
          {text && <p class="quiet">{text}</p>}
          <Snippet text={code} />
        </div>
      ))}
      {item.tries && <TryIt call={item.tries} title={item.title} workflow={workflow} />}
    </section>
  );
}

/** Makes the request of a snippet and shows the answer. */
function TryIt({ call, title, workflow }: { call: Try; title: string; workflow: string }) {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [running, setRunning] = useState<AbortController | null>(null);
  useEffect(() => () => running?.abort(), [running]);
  const run = async (): Promise<void> => {
    const controller = new AbortController();
    setRunning(controller);
    setError(null);
    setAnswer(null);
    try {
      await attempt(call, controller.signal, setAnswer);
    } catch (failure) {
      if (!controller.signal.aborted) setError(asError(failure));
    } finally {
      setRunning(null);
    }
  };
  const reason = call.effect ? whyNot(call.path) : "";
  return (
    <>
      <div class="actions">
        {running ? (
          <button type="button" class="button" aria-label={`Stop: ${title}`} onClick={() => running.abort()}>
            Stop
          </button>
        ) : (
          <button type="button" class="button" aria-label={`Try it: ${title}`} disabled={reason !== ""} title={reason} onClick={() => void run()}>
            Try it
          </button>
        )}
        <span class="small quiet">
          <code>
            {call.method} {call.path}
          </code>
          {call.effect && `, ${call.effect}`}
        </span>
      </div>
      {error && <Problem error={error} />}
      {answer && (
        <div role="status">
          <p class="small quiet">
            Status {answer.status}, {running ? "continues" : `took ${duration(answer.ms)}`}
            {answer.cut && `, ${answer.cut}`}
            {answer.executionId && (
              <>
                {" · "}
                <a href={to("executions", workflow, answer.executionId)}>Open the execution</a>
              </>
            )}
          </p>
          <pre class="answered" tabIndex={0} aria-label={`Answer: ${title}`}>
            {answer.text}
          </pre>
        </div>
      )}
    </>
  );
}
