import type { BulkAction, ExecutionItem } from "../api/types.ts";
import { bulkPath } from "../lib/bulk.ts";
import { to } from "../lib/router.ts";
import { plural } from "../lib/text.ts";
import { whyNot } from "../parts/Act.tsx";
import { Menu } from "../parts/Menu.tsx";
import { kindOf } from "../parts/Status.tsx";

const isOver = (row: ExecutionItem): boolean => row.endAt !== null;

/** The commands for many executions, as the API knows them. */
const verbs: { name: string; action: BulkAction; fits: (row: ExecutionItem) => boolean }[] = [
  { name: "Suspend", action: "suspend", fits: (row) => row.status === "running" },
  { name: "Resume", action: "resume", fits: (row) => kindOf(row) === "held" },
  { name: "Cancel", action: "cancel", fits: (row) => !isOver(row) },
  { name: "Replay", action: "replay", fits: (row) => row.status === "error" },
];

/** Acts on the chosen executions. */
export function Bulk({ chosen, clear, all, act }: { chosen: ExecutionItem[]; clear: () => void; all: (() => void) | undefined; act: (action: BulkAction) => void }) {
  const [first, second] = chosen;
  return (
    <div class="actions">
      <span>{plural(chosen.length, "execution")} chosen</span>
      {verbs.map((each) => {
        const count = chosen.filter(each.fits).length;
        const why = whyNot(bulkPath) || (count === 0 ? "None of them can be" : "");
        return (
          <button key={each.name} type="button" class={`button ${each.action === "cancel" ? "danger" : ""}`} disabled={why !== ""} title={why} onClick={() => act(each.action)}>
            {each.name} {count}
          </button>
        );
      })}
      {first && second && chosen.length === 2 && (
        <a class="button" href={`${to("compare")}?${new URLSearchParams({ a: `${first.workflowId}/${first.executionId}`, b: `${second.workflowId}/${second.executionId}` })}`}>
          Compare
        </a>
      )}
      <button type="button" class="bare" onClick={clear}>
        choose none
      </button>
      {all && (
        <button type="button" class="bare" onClick={all}>
          choose all
        </button>
      )}
    </div>
  );
}

/** Acts on everything that a filter selects, also what is not loaded yet. */
export function BulkOfAll({ act }: { act: (action: BulkAction) => void }) {
  return (
    <Menu head="Act on all of these">
      {verbs.map((each) => (
        <button key={each.name} type="button" class="bare" disabled={whyNot(bulkPath) !== ""} title={whyNot(bulkPath)} onClick={() => act(each.action)}>
          {each.name}…
        </button>
      ))}
    </Menu>
  );
}
