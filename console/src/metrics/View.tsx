import { plural } from "../lib/text.ts";
import { Copy } from "../parts/Copy.tsx";
import { Empty, Loading } from "../parts/Empty.tsx";
import { Problem } from "../parts/Problem.tsx";
import { Chart } from "./Chart.tsx";
import { charts, queryOf } from "./charts.ts";
import { interval, useMeasured } from "./history.ts";
import "./metrics.css";

/** A dozen charts of what the server counts, each with its queries. */
export function Metrics() {
  const history = useMeasured();
  const { times, error } = history;
  if (error && times.length === 0) return <Off error={error} />;
  if (times.length === 0) return <Loading what="the first two values of each metric" />;
  return (
    <>
      {error && <Problem error={error} />}
      <p class="note" role="status">
        {plural(times.length, "value")} of each line, one every {interval / 1000} s since this page was opened. Prometheus keeps them for longer: each chart has its queries.
      </p>
      <div class="charts">
        {charts.map((chart) => (
          <section key={chart.title}>
            <Chart chart={chart} history={history} />
            <details class="queries">
              <summary class="small quiet">Queries</summary>
              <dl>
                {chart.series.map((series) => (
                  <div key={series.label}>
                    <dt class="small quiet">{series.label}</dt>
                    <dd>
                      <code>{queryOf(series)}</code> <Copy text={queryOf(series)} label="Copy" class="bare small" />
                    </dd>
                  </div>
                ))}
              </dl>
            </details>
          </section>
        ))}
      </div>
    </>
  );
}

function Off({ error }: { error: Parameters<typeof Problem>[0]["error"] }) {
  if (error.status !== 404) return <Problem error={error} />;
  return (
    <Empty title="This server has no metrics">
      <p>
        They are switched off: <code>[metrics] enabled = true</code> in its configuration switches them on.
      </p>
    </Empty>
  );
}
