import type { OutcomePart } from "../api/types.ts";
import { number } from "../lib/text.ts";

const height = 28;
const width = 4;

/** Outcomes of the parts of a period, oldest first, as small bars. */
export function Trend({ parts, period }: { parts: readonly OutcomePart[]; period: string }) {
  const most = Math.max(1, ...parts.map((part) => part.completed + part.error + part.cancelled));
  const sum = (field: "completed" | "error" | "cancelled"): number => parts.reduce((all, part) => all + part[field], 0);
  const [completed, failed, cancelled] = [sum("completed"), sum("error"), sum("cancelled")];
  if (completed + failed + cancelled === 0) return <span class="quiet small">nothing ended in {period}</span>;
  const text = `In ${period}: ${number(completed)} completed, ${number(failed)} failed, ${number(cancelled)} cancelled; at most ${number(most)} at once`;
  return (
    <svg class="trend" role="img" aria-label={text} viewBox={`0 0 ${parts.length * width} ${height}`} width={parts.length * width} height={height}>
      <title>{text}</title>
      {parts.flatMap((part, index) => {
        let top = height;
        return ([
          ["completed", part.completed],
          ["failed", part.error],
          ["cancelled", part.cancelled],
        ] as const).map(([kind, count]) => {
          if (count === 0) return null;
          // A single failure among thousands is seen as well.
          const size = Math.max(1.5, (count / most) * (height - 3));
          top -= size;
          return <rect key={`${index} ${kind}`} class={kind} x={index * width} y={Math.max(0, top)} width={width - 1} height={size} />;
        });
      })}
    </svg>
  );
}
