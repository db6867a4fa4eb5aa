import type { BulkAction, ExecutionItem } from "../api/types.ts";
import { bulkPath, idsMax } from "../lib/bulk.ts";
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

/** Returns the reason for which a command cannot be given to executions of these workflows: who may not give it to one may not to many. */
function whyNotFor(action: BulkAction, workflows: Iterable<string>): string {
  const single = (id: string): string => whyNot(`/workflows/${encodeURIComponent(id)}/executions/any/${action}`);
  return [whyNot(bulkPath), ...Array.from(new Set(workflows), single)].find((why) => why !== "") ?? "";
}

/** Acts on the chosen executions. */
export function Bulk({ chosen, clear, all, act }: { chosen: ExecutionItem[]; clear: () => void; all: (() => void) | undefined; act: (action: BulkAction) => void }) {
  const [first, second] = chosen;
  return (
    <div class="actions">
      <span>
        {plural(chosen.length, "execution")} chosen{chosen.length >= idsMax && ", the most at once"}
      </span>
      {verbs.map((each) => {
        const fitting = chosen.filter(each.fits);
        const count = fitting.length;
        const why = whyNotFor(each.action, fitting.map((row) => row.workflowId)) || (count === 0 ? "None of them can be" : "");
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

/** Acts on everything that a filter selects, also what is not loaded yet; `workflows` are those that are known of it. */
export function BulkOfAll({ workflows, act }: { workflows: string[]; act: (action: BulkAction) => void }) {
  return (
    <Menu head="Act on all of these">
      {verbs.map((each) => {
        const why = whyNotFor(each.action, workflows);
        return (
          <button key={each.name} type="button" class="bare" disabled={why !== ""} title={why} onClick={() => act(each.action)}>
            {each.name}…
          </button>
        );
      })}
    </Menu>
  );
}
