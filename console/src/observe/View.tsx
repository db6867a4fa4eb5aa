import { useTitle } from "../lib/hooks.ts";
import { param, setParams } from "../lib/router.ts";
import { Metrics } from "../metrics/View.tsx";
import { Logs } from "./Logs.tsx";
import { Traces } from "./Traces.tsx";
import "./observe.css";

const tabs = [
  { name: "", text: "Traces", view: Traces },
  { name: "logs", text: "Logs", view: Logs },
  { name: "metrics", text: "Metrics", view: Metrics },
];

/** Traces, logs and metrics. */
export function ObserveView() {
  useTitle("Observe");
  const tab = tabs.find(({ name }) => name === param("tab")) ?? tabs[0];
  return (
    <>
      <div class="heading">
        <h1>Observe</h1>
        <div class="tabs" role="group" aria-label="Part">
          {tabs.map(({ name, text }) => (
            <button key={name} type="button" aria-pressed={tab?.name === name} onClick={() => setParams({ tab: name }, "push")}>
              {text}
            </button>
          ))}
        </div>
      </div>
      {tab && <tab.view />}
    </>
  );
}
