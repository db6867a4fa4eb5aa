import type { StatusCounts } from "../api/types.ts";
import { number } from "../lib/text.ts";
import type { Kind } from "../parts/Status.tsx";

const order: { field: keyof StatusCounts; kind: Kind; text: string }[] = [
  { field: "completed", kind: "completed", text: "completed" },
  { field: "running", kind: "running", text: "running" },
  { field: "suspended", kind: "waiting", text: "waiting or suspended" },
  { field: "error", kind: "failed", text: "failed" },
  { field: "cancelled", kind: "cancelled", text: "cancelled" },
];

/** Parts of all stored executions, as a bar with its numbers in words. */
export function Outcomes({ counts }: { counts: StatusCounts | undefined }) {
  if (!counts || counts.all === 0) return <span class="quiet small">never ran</span>;
  const shown = order.filter(({ field }) => counts[field] > 0);
  const text = shown.map(({ field, text }) => `${number(counts[field])} ${text}`).join(", ");
  return (
    <span class="outcomes" title={text}>
      <span class="bar" aria-hidden="true">
        {shown.map(({ field, kind }) => (
          <span key={field} class={kind} style={{ flexGrow: counts[field] }} />
        ))}
      </span>
      <span class="small quiet">{text}</span>
    </span>
  );
}
