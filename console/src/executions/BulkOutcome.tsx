import type { BulkAction } from "../api/types.ts";
import { bulkWords } from "../lib/bulk.ts";
import { to } from "../lib/router.ts";
import { number, plural } from "../lib/text.ts";
import { Id } from "../parts/Id.tsx";

/** Result of an operation, as its execution has it; so far, while it is under way. */
export interface Counts {
  done: number;
  /** Unfinished executions that those cancelled had started; absent from what older versions recorded. */
  children?: number;
  /** Number of the cancelled ones that compensate before they end; absent likewise. */
  compensating?: number;
  skipped: number;
  failed: number;
  /** The first of those that failed. */
  failures: { executionId: string; message: string }[];
}

/** `11 replayed, 2 left out`: what is zero is left out, except for what was wanted. */
export function wordsOfCounts({ done, children = 0, compensating = 0, skipped, failed }: Counts, action: BulkAction): string {
  return [`${number(done)} ${bulkWords[action].done}`, compensating > 0 && `of these ${number(compensating)} compensate first`, children > 0 && `${number(children)} that they had started cancelled with them`, skipped > 0 && `${number(skipped)} left out`, failed > 0 && `${number(failed)} failed`].filter(Boolean).join(", ");
}

/** Lists what failed and why. Results name executions by their ids alone. */
export function Failures({ counts: { failures, failed } }: { counts: Counts }) {
  if (failures.length === 0) return null;
  return (
    <>
      <ul class="faults">
        {failures.map((each) => (
          <li key={each.executionId}>
            <Id id={each.executionId} href={to("executions", each.executionId)} max={24} /> <bdi class="bad">{each.message}</bdi>
          </li>
        ))}
      </ul>
      {failed > failures.length && <p class="quiet small">{plural(failed - failures.length, "more failure")}, of which no reasons are kept.</p>}
    </>
  );
}
