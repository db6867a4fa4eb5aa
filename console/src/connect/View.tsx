import { useState } from "preact/hooks";
import { get, send } from "../api/client.ts";
import { type ApiError, refusal } from "../api/error.ts";
import { asError, useResource } from "../api/resource.ts";
import { boot } from "../lib/boot.ts";
import { useTitle } from "../lib/hooks.ts";
import { duration } from "../lib/time.ts";
import { Loading, Snippet } from "../parts/Empty.tsx";
import { Problem } from "../parts/Problem.tsx";
import { type Snippet as Item, snippets } from "./snippets.ts";
import "./connect.css";

/** Ready commands and code for this server. */
export function ConnectView() {
  useTitle("Connect");
  const found = useResource(async (signal) => {
    const [workflows, agents, metrics] = await Promise.all([
      get("/workflows", { signal }),
      get("/agents", { signal }),
      send("GET", "/metrics", { signal }).then((response) => response.ok),
    ]);
    const first = workflows.find((each) => each.id === "expense-approval") ?? workflows[0];
    const workflow = first && (await get("/workflows/{id}", { path: { id: first.id }, signal }));
    return snippets(location.origin, workflow, agents[0], metrics);
  }, []);
  return (
    <div class="connect">
      <div class="heading">
        <h1>Connect</h1>
      </div>
      {boot.auth && <p class="quiet">This server wants tokens: add the header “authorization: Bearer …” to each of these.</p>}
      {found.error && <Problem error={found.error} retry={found.reload} />}
      {found.loading && !found.data && <Loading what="what this server has" />}
      {found.data?.map((item) => (
        <One key={item.title} item={item} />
      ))}
    </div>
  );
}

function One({ item }: { item: Item }) {
  const [answer, setAnswer] = useState<{ text: string; ms: number; status: number } | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const attempt = async (path: string): Promise<void> => {
    const from = performance.now();
    try {
      const response = await send("GET", path);
      if (!response.ok) throw await refusal(response);
      const text = await response.text();
      setAnswer({ text: text.length > 1500 ? `${text.slice(0, 1500)}…` : text, ms: performance.now() - from, status: response.status });
      setError(null);
    } catch (failure) {
      setError(asError(failure));
    }
  };
  return (
    <section>
      <h2>{item.title}</h2>
      <p class="quiet">{item.text}</p>
      <Snippet text={item.code} />
      {item.tries && (
        <button type="button" class="button" onClick={() => void attempt(item.tries ?? "")}>
          Try it
        </button>
      )}
      {error && <Problem error={error} />}
      {answer && (
        <div role="status">
          <p class="small quiet">
            {answer.status}, {duration(answer.ms)}
          </p>
          <pre class="answered" tabIndex={0}>
            {answer.text}
          </pre>
        </div>
      )}
    </section>
  );
}
