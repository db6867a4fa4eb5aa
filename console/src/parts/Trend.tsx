import type { OutcomePart } from "../api/types.ts";
import { number } from "../lib/text.ts";

const height = 28;

/** Outcomes of the parts of a period, oldest first, as bars over a line that ends now. */
export function Trend({ parts, period, wide }: { parts: readonly OutcomePart[]; period: string; wide?: boolean }) {
  const width = wide ? 12 : 5;
  const most = Math.max(1, ...parts.map((part) => part.completed + part.error + part.cancelled));
  const sum = (field: "completed" | "error" | "cancelled"): number => parts.reduce((all, part) => all + part[field], 0);
  const [completed, failed, cancelled] = [sum("completed"), sum("error"), sum("cancelled")];
  const words = [completed > 0 && `${number(completed)} completed`, failed > 0 && `${number(failed)} failed`, cancelled > 0 && `${number(cancelled)} cancelled`].filter(Boolean).join(", ");
  if (words === "") return wide ? <p class="quiet">Nothing ended in {period}.</p> : null;
  const label = `In ${period}: ${words}`;
  return (
    <div class="trend">
      <svg role="img" aria-label={label} viewBox={`0 0 ${parts.length * width} ${height + 1}`} width={parts.length * width} height={height + 1}>
        <title>{label}</title>
        <line x1="0" x2={parts.length * width} y1={height + 0.5} y2={height + 0.5} />
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
      <span class="small quiet">
        {words} in {period}
      </span>
    </div>
  );
}
