import { useState } from "preact/hooks";
import { number, plural } from "../lib/text.ts";
import { type Kind, Mark, word } from "../parts/Status.tsx";
import type { Step } from "./fold.ts";

const shownAtOnce = 240;
const order: Kind[] = ["failed", "retrying", "waiting", "held", "running", "sleeping", "cancelled", "skipped", "completed"];

/** All rounds of one step: how many are where, and each of them as a small square. */
export function Lanes({ steps, current, select }: { steps: readonly Step[]; current: string; select: (path: string) => void }) {
  const [only, setOnly] = useState<Kind | null>(null);
  const [shown, setShown] = useState(shownAtOnce);
  const counts = new Map<Kind, number>();
  for (const step of steps) counts.set(step.kind, (counts.get(step.kind) ?? 0) + 1);
  const list = only && counts.has(only) ? steps.filter((step) => step.kind === only) : steps;
  return (
    <section>
      <h3>{plural(steps.length, "round")}</h3>
      <div class="counters">
        {order
          .filter((kind) => counts.has(kind))
          .map((kind) => (
            <button key={kind} type="button" class={`bare small ${kind}`} aria-pressed={only === kind} onClick={() => setOnly(only === kind ? null : kind)}>
              <Mark kind={kind} /> {number(counts.get(kind) ?? 0)} {word(kind)}
            </button>
          ))}
      </div>
      <div class="squares">
        {list.slice(0, shown).map((step) => (
          <button
            key={step.path}
            type="button"
            class={`square ${step.kind}`}
            title={`${step.path}: ${word(step.kind)}`}
            aria-label={`${step.path}, ${word(step.kind)}`}
            aria-pressed={step.path === current}
            onClick={() => select(step.path)}
          />
        ))}
      </div>
      {list.length > shown && (
        <button type="button" class="bare small" onClick={() => setShown(shown + 1000)}>
          {number(list.length - shown)} more
        </button>
      )}
    </section>
  );
}
