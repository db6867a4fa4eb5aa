import { useTitle } from "../lib/hooks.ts";
import { param, setParams } from "../lib/router.ts";
import { Logs } from "./Logs.tsx";
import { Traces } from "./Traces.tsx";
import "./observe.css";

/** Traces and logs. */
export function ObserveView() {
  useTitle("Observe");
  const tab = param("tab") === "logs" ? "logs" : "traces";
  return (
    <>
      <div class="heading">
        <h1>Observe</h1>
        <div class="tabs" role="group" aria-label="Part">
          <button type="button" aria-pressed={tab === "traces"} onClick={() => setParams({ tab: "" }, "push")}>
            Traces
          </button>
          <button type="button" aria-pressed={tab === "logs"} onClick={() => setParams({ tab: "logs" }, "push")}>
            Logs
          </button>
        </div>
      </div>
      {tab === "traces" ? <Traces /> : <Logs />}
    </>
  );
}
