import { quantile, rate, type Snapshot, sum, type Where } from "./exposition.ts";

/** One line of a chart. What is drawn and the query that is shown are made of the same words. */
export interface Series {
  label: string;
  metric: string;
  as: "rate" | "now" | { quantile: number };
  where?: Where;
  /** Custom property of the colour. */
  colour: string;
}

export type Unit = "per second" | "seconds" | "bytes" | "number";

export interface ChartOf {
  title: string;
  unit: Unit;
  series: Series[];
}

const p = (q: number): Series["as"] => ({ quantile: q });

export const throughput: ChartOf = {
  title: "Executions",
  unit: "per second",
  series: [
    { label: "started", metric: "greenroom_executions_started_total", as: "rate", colour: "--running" },
    { label: "completed", metric: "greenroom_executions_finished_total", as: "rate", where: { status: "completed" }, colour: "--completed" },
    { label: "failed", metric: "greenroom_executions_finished_total", as: "rate", where: { status: "error" }, colour: "--failed" },
  ],
};

export const stepTimes: ChartOf = {
  title: "Attempts of steps",
  unit: "seconds",
  series: [
    { label: "p50", metric: "greenroom_step_duration_seconds", as: p(0.5), colour: "--completed" },
    { label: "p95", metric: "greenroom_step_duration_seconds", as: p(0.95), colour: "--running" },
  ],
};

export const charts: ChartOf[] = [
  throughput,
  stepTimes,
  {
    title: "Executions, waits included",
    unit: "seconds",
    series: [
      { label: "p50", metric: "gen_ai_invoke_workflow_duration_seconds", as: p(0.5), colour: "--completed" },
      { label: "p95", metric: "gen_ai_invoke_workflow_duration_seconds", as: p(0.95), colour: "--running" },
    ],
  },
  {
    title: "Work in memory",
    unit: "number",
    series: [
      { label: "executions", metric: "greenroom_executions_live", as: "now", colour: "--running" },
      { label: "steps", metric: "greenroom_steps_running", as: "now", colour: "--completed" },
      { label: "generations", metric: "greenroom_generations_live", as: "now", colour: "--waiting" },
    ],
  },
  {
    title: "Waiting for a person",
    unit: "number",
    series: [
      { label: "questions", metric: "greenroom_asks", as: "now", where: { kind: /step|function|input/ }, colour: "--waiting" },
      { label: "failed compensations", metric: "greenroom_asks", as: "now", where: { kind: "compensation" }, colour: "--failed" },
      { label: "approvals of tools", metric: "greenroom_asks", as: "now", where: { kind: "approval" }, colour: "--held" },
    ],
  },
  {
    title: "Attempts that failed",
    unit: "per second",
    series: [
      { label: "tried again", metric: "greenroom_step_retries_total", as: "rate", colour: "--held" },
      { label: "failed", metric: "greenroom_step_duration_seconds_count", as: "rate", where: { status: "error" }, colour: "--failed" },
    ],
  },
  {
    title: "Requests",
    unit: "per second",
    series: [
      { label: "all", metric: "http_requests_total", as: "rate", colour: "--running" },
      { label: "refused", metric: "http_requests_total", as: "rate", where: { status: /4../ }, colour: "--held" },
      { label: "errors", metric: "http_requests_total", as: "rate", where: { status: /5../ }, colour: "--failed" },
    ],
  },
  {
    title: "Time to answer",
    unit: "seconds",
    series: [
      { label: "p50", metric: "http_server_request_duration_seconds", as: p(0.5), colour: "--completed" },
      { label: "p95", metric: "http_server_request_duration_seconds", as: p(0.95), colour: "--running" },
    ],
  },
  {
    title: "Models",
    unit: "seconds",
    series: [
      { label: "whole, p95", metric: "gen_ai_client_inference_duration_seconds", as: p(0.95), colour: "--running" },
      { label: "first word, p95", metric: "gen_ai_client_inference_time_to_first_chunk_seconds", as: p(0.95), colour: "--completed" },
    ],
  },
  {
    title: "Tokens",
    unit: "per second",
    series: [
      { label: "in", metric: "gen_ai_client_inference_usage_input_tokens_total", as: "rate", colour: "--running" },
      { label: "out", metric: "gen_ai_client_inference_usage_output_tokens_total", as: "rate", colour: "--waiting" },
    ],
  },
  {
    title: "Commits of the store",
    unit: "seconds",
    series: [
      { label: "p50", metric: "greenroom_journal_commit_duration_seconds", as: p(0.5), colour: "--completed" },
      { label: "p95", metric: "greenroom_journal_commit_duration_seconds", as: p(0.95), colour: "--running" },
    ],
  },
  {
    title: "Memory",
    unit: "bytes",
    series: [
      { label: "process", metric: "process_resident_memory_bytes", as: "now", colour: "--running" },
      { label: "executions", metric: "greenroom_executions_memory_bytes", as: "now", colour: "--waiting" },
    ],
  },
  {
    title: "Connections",
    unit: "number",
    series: [
      { label: "all", metric: "greenroom_http_connections", as: "now", colour: "--running" },
      { label: "event streams", metric: "greenroom_sse_subscribers", as: "now", colour: "--completed" },
      { label: "WebSockets", metric: "greenroom_ws_connections", as: "now", colour: "--waiting" },
    ],
  },
];

/** The value of a line between two snapshots. */
export function valueOf({ metric, as, where }: Series, before: Snapshot, after: Snapshot): number | null {
  if (as === "now") return sum(after, metric, where);
  return as === "rate" ? rate(before, after, metric, where) : quantile(before, after, metric, as.quantile, where);
}

/** The same as a query of Prometheus. */
export function queryOf({ metric, as, where = {} }: Series): string {
  const chosen = Object.entries(where).map(([name, value]) => (typeof value === "string" ? `${name}="${value}"` : `${name}=~"${value.source}"`));
  const labels = chosen.length > 0 ? `{${chosen.join(", ")}}` : "";
  if (as === "now") return `sum(${metric}${labels})`;
  if (as === "rate") return `sum(rate(${metric}${labels}[1m]))`;
  return `histogram_quantile(${as.quantile}, sum by (le) (rate(${metric}_bucket${labels}[1m])))`;
}

export function keyOf(chart: ChartOf, series: Series): string {
  return `${chart.title} ${series.label}`;
}
