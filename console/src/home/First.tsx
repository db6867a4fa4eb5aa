import { get } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { go, to } from "../lib/router.ts";
import { actor } from "../lib/settings.ts";
import { useAct, whyNot } from "../parts/Act.tsx";
import { Problem } from "../parts/Problem.tsx";

/** Offers what can be done first, as far as this server has it. */
export function First() {
  const workflows = useResource((signal) => get("/workflows", { signal }), []);
  const agents = useResource((signal) => get("/agents", { signal }), []);
  const approval = workflows.data?.some((each) => each.id === "expense-approval");
  const { run, error, isBusy } = useAct<{ executionId: string }>((data, response) => go(to("executions", "expense-approval", response.headers.get("x-execution-id") ?? data.executionId)));
  const first = agents.data?.[0];
  return (
    <section>
      <h2>Nothing has run yet. Three ways to begin:</h2>
      <ul class="first">
        {approval && (
          <li>
            <h3>Ask a person for money</h3>
            <p>An expense of 900 waits until a manager approves it. You are the manager as well.</p>
            <button
              type="button"
              class="button primary"
              disabled={isBusy || whyNot() !== ""}
              title={whyNot()}
              onClick={() => void run({ method: "POST", path: "/workflows/expense-approval/execute", body: { input: { employee: "Ada", amount: 900 }, options: actor() }, headers: { prefer: "respond-async" } })}
            >
              Run the expense approval
            </button>
          </li>
        )}
        {first && (
          <li>
            <h3>Talk to an agent</h3>
            <p>{first.description || `Its name is ${first.name}.`}</p>
            <a class="button" href={to("agents", first.id)}>
              Chat with {first.name}
            </a>
          </li>
        )}
        <li>
          <h3>Look at what could run</h3>
          <p>Each workflow has its graph, and a form that starts it.</p>
          <a class="button" href={to("workflows")}>
            See the workflows
          </a>
        </li>
      </ul>
      {error && <Problem error={error} />}
    </section>
  );
}
