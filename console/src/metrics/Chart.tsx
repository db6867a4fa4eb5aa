import { effect, signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import { theme } from "../lib/settings.ts";
import { bytes, number } from "../lib/text.ts";
import { duration } from "../lib/time.ts";
import { type ChartOf, keyOf, type Unit } from "./charts.ts";
import type { History } from "./history.ts";

let library: Promise<typeof uPlot> | undefined;

/** Counts changes of the theme: canvases are painted anew. */
const painted = signal(0);
if (typeof matchMedia !== "undefined") matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (painted.value += 1));
effect(() => {
  if (theme.value) setTimeout(() => (painted.value += 1));
});

/** Lines over the time since the page was opened, with their newest values, or those under the pointer. */
export function Chart({ chart, history, height = 130 }: { chart: ChartOf; history: History; height?: number }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const [at, setAt] = useState<number | null>(null);
  const lines = chart.series.map((series) => history.values.get(keyOf(chart, series)) ?? []);
  const data: uPlot.AlignedData = [history.times, ...lines];
  const latest = useRef(data);
  latest.current = data;
  const colours = painted.value;

  useEffect(() => {
    const element = place.current;
    if (!element) return;
    let isGone = false;
    let made: uPlot | undefined;
    const resized = new ResizeObserver(() => made?.setSize({ width: element.clientWidth, height }));
    void (library ??= import("./plot.ts").then((module) => module.default)).then((Plot) => {
      if (isGone) return;
      made = new Plot(optionsOf(chart, element, height, setAt), latest.current, element);
      plot.current = made;
      resized.observe(element);
    });
    return () => {
      isGone = true;
      resized.disconnect();
      made?.destroy();
    };
  }, [chart, height, colours]);
  useEffect(() => plot.current?.setData(latest.current), [history.times]);

  const index = at ?? history.times.length - 1;
  const shown = chart.series.map((series, line) => ({ series, text: format(lines[line]?.[index] ?? null, chart.unit) }));
  return (
    <figure class="chart">
      <figcaption>
        <strong>{chart.title}</strong>
        <ul>
          {shown.map(({ series, text }) => (
            <li key={series.label}>
              <span class="key" style={{ color: `var(${series.colour})` }} aria-hidden="true" />
              {series.label} <b class="number">{text}</b>
            </li>
          ))}
        </ul>
      </figcaption>
      <div ref={place} class="plot" style={{ minHeight: `${height}px` }} role="img" aria-label={`${chart.title}: ${shown.map(({ series, text }) => `${series.label} ${text}`).join(", ")}`} />
    </figure>
  );
}

export function format(value: number | null, unit: Unit): string {
  if (value === null || !Number.isFinite(value)) return "–";
  if (unit === "bytes") return bytes(value);
  if (unit === "seconds") return value > 0 && value < 0.001 ? "< 1 ms" : duration(value * 1000);
  if (unit === "per second" && value > 0 && value < 0.01) return "< 0.01/s";
  const short = value >= 100 || Number.isInteger(value) ? number(Math.round(value)) : value.toFixed(value < 1 ? 2 : 1);
  return unit === "per second" ? `${short}/s` : short;
}

function optionsOf(chart: ChartOf, element: HTMLElement, height: number, point: (index: number | null) => void): uPlot.Options {
  const colour = (name: string): string => {
    // Pairs of colours are resolved where they are used.
    element.style.color = `var(${name})`;
    const resolved = getComputedStyle(element).color;
    element.style.color = "";
    return resolved;
  };
  const [quiet, line] = [colour("--quiet"), colour("--line")];
  const font = `11px ${getComputedStyle(element).fontFamily}`;
  const grid = { stroke: line, width: 1 };
  return {
    width: element.clientWidth,
    height,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    hooks: { setCursor: [(plot) => point(plot.cursor.idx ?? null)] },
    padding: [8, 6, 0, 0],
    scales: {
      // a few minutes at least, so that the first values are not the whole width
      x: {
        range: (plot) => {
          const last = plot.data[0].at(-1) ?? 0;
          return [Math.min(plot.data[0][0] ?? 0, last - shortest), last];
        },
      },
      y: { range: (_plot, _min, max) => [0, Math.max(max * 1.1, least[chart.unit])] },
    },
    axes: [
      { stroke: quiet, font, grid: { show: false }, ticks: { show: false }, size: 22, space: 64, values: (_plot, marks) => marks.map((mark) => clock.format(mark * 1000)) },
      { stroke: quiet, font, grid, ticks: { show: false }, size: 58, space: 34, values: (_plot, marks) => marks.map((mark) => format(mark, chart.unit)) },
    ],
    series: [{}, ...chart.series.map((series, index) => ({ label: series.label, stroke: colour(series.colour), width: 1.5, points: { show: (plot: uPlot) => plot.data[0].length < 3, size: 4 }, ...(index > 0 ? { dash: index > 1 ? [2, 3] : [6, 3] } : {}) }))],
  };
}

/** Seconds of the shortest axis. */
const shortest = 180;

/** Least end of the axis of values, by unit: noise is not drawn large. */
const least: Record<Unit, number> = { "per second": 1, seconds: 0.01, bytes: 1000, number: 4 };

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
