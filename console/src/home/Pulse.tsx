import { inbox, openAsks, readMax } from "../inbox/store.ts";
import { origin } from "../inbox/asks.ts";
import type { Named } from "../lib/named.ts";
import { to } from "../lib/router.ts";
import { firstLine, number } from "../lib/text.ts";
import { Chart } from "../metrics/Chart.tsx";
import { stepTimes, throughput } from "../metrics/charts.ts";
import { useMeasured } from "../metrics/history.ts";
import { Id } from "../parts/Id.tsx";
import { Mark } from "../parts/Status.tsx";
import { Since } from "../parts/Time.tsx";
import "../metrics/metrics.css";

const shown = 5;

/** The oldest questions: nobody may have seen them. */
export function WaitsLongest({ workflows }: { workflows: readonly Named[] | undefined }) {
  const oldest = [...openAsks.value].sort((a, b) => Date.parse(a.openedAt) - Date.parse(b.openedAt)).slice(0, shown);
  if (oldest.length === 0) return null;
  return (
    <section>
      <div class="note">
        <h2>Wait longest</h2>
        <a href={`${to("inbox")}?order=age`}>all</a>
        {inbox.value.more && <span>among the {number(readMax)} with the nearest deadlines</span>}
      </div>
      <ul class="lines waits">
        {oldest.map((ask) => (
          <li key={ask.askId}>
            <Mark kind="waiting" />
            <a href={to("inbox", ask.askId)}>
              <bdi>{firstLine(ask.reason || "A question")}</bdi>
            </a>
            <span class="quiet">
              <bdi>{origin(ask, workflows).text}</bdi>
              {"executionId" in ask.of && (
                <>
                  {" "}
                  <Id id={ask.of.executionId} max={12} />
                </>
              )}
            </span>
            <Since at={ask.openedAt} />
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Throughput and times, while the page is open; nothing where metrics are off or not for this caller. */
export function Pulse() {
  const history = useMeasured();
  if (history.times.length === 0) return null;
  return (
    <section>
      <div class="note">
        <h2>Now</h2>
        <a href={`${to("observe")}?tab=metrics`}>all metrics</a>
      </div>
      <div class="charts">
        <Chart chart={throughput} history={history} height={110} />
        <Chart chart={stepTimes} history={history} height={110} />
      </div>
    </section>
  );
}
