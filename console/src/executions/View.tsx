import { useEffect, useMemo, useState } from "preact/hooks";
import { address } from "../api/client.ts";
import { curl } from "../api/curl.ts";
import { useWorkflows } from "../api/names.ts";
import type { BulkAction, ExecutionItem } from "../api/types.ts";
import { useTitle } from "../lib/hooks.ts";
import { nameOf, type Named } from "../lib/named.ts";
import { isNarrow } from "../lib/narrow.ts";
import { place, to } from "../lib/router.ts";
import { stored } from "../lib/store.ts";
import { firstLine, number, plural } from "../lib/text.ts";
import { Copy } from "../parts/Copy.tsx";
import { Empty, Loading } from "../parts/Empty.tsx";
import { Id } from "../parts/Id.tsx";
import { Menu } from "../parts/Menu.tsx";
import { Problem } from "../parts/Problem.tsx";
import { kindOf, Status } from "../parts/Status.tsx";
import { type Column, Table } from "../parts/Table.tsx";
import { Duration, Time } from "../parts/Time.tsx";
import { Bulk, BulkOfAll } from "./Bulk.tsx";
import { BulkDialog, type Selection } from "./BulkDialog.tsx";
import { bulkPath, idsMax } from "../lib/bulk.ts";
import { Filters } from "./Filters.tsx";
import { type Filter, filterOf, isEmpty, queryOf, wordsOf } from "./filter.ts";
import { pageSize, useList } from "./pages.ts";

const saved = stored<Record<string, string>>("filters", {});

const columnsOf = (workflows: readonly Named[] | undefined, gone: ReadonlySet<string>): Column<ExecutionItem>[] => [
  { name: "Status", kind: "status-cell", cell: (row) => (isUnknown(row, gone) ? <Left /> : <Status kind={kindOf(row)} />) },
  { name: "Workflow", kind: "name", cell: (row) => nameOf(workflows, row.workflowId) },
  { name: "Execution", kind: "id-cell", cell: (row) => <Id id={row.executionId} href={to("executions", row.workflowId, row.executionId)} /> },
  { name: "Waits for, or error", kind: "wide", cell: (row) => <Now row={row} workflow={nameOf(workflows, row.workflowId)} /> },
  { name: "User", kind: "narrow", cell: (row) => <bdi>{row.userId}</bdi> },
  { name: "Started", kind: "time", cell: (row) => <Time at={row.startAt} /> },
  { name: "Took", kind: "time second", cell: (row) => (isUnknown(row, gone) ? <span class="quiet">–</span> : <Duration from={row.startAt} until={row.endAt} rough />) },
];

/** Returns true if nothing is known of an execution: it had not ended, and has left the list. */
function isUnknown(row: ExecutionItem, gone: ReadonlySet<string>): boolean {
  return row.endAt === null && gone.has(row.executionId);
}

function Left() {
  return (
    <span title="It no longer fits the filter, or is no longer stored">
      <Status kind="none" text="left the list" />
    </span>
  );
}

/** Shows the error of an execution or the reason for which it waits; on a phone also its workflow and its id. */
function Now({ row, workflow }: { row: ExecutionItem; workflow: string }) {
  const text = row.error ? row.error.message : row.suspension?.reason;
  return (
    <>
      {isNarrow() && (
        <span>
          <bdi>{workflow}</bdi> <Id id={row.executionId} href={to("executions", row.workflowId, row.executionId)} max={12} />{" "}
        </span>
      )}
      {text && (
        <bdi class={row.error ? "bad" : "quiet"} title={text}>
          {row.error?.stepId && `${row.error.stepId}: `}
          {firstLine(text)}
        </bdi>
      )}
    </>
  );
}

/** Action on many executions that is about to be confirmed. */
interface Acting {
  action: BulkAction;
  about: string;
  selection: Selection;
}

export function ExecutionsView() {
  useTitle("Executions");
  const filter = filterOf(place.value.query);
  const list = useList(filter);
  const workflows = useWorkflows();
  const columns = useMemo(() => columnsOf(workflows, list.gone), [workflows, list.gone]);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [acting, setActing] = useState<Acting | null>(null);
  const key = JSON.stringify(filter);
  useEffect(() => setChosen(new Set()), [key]);
  const choose = (id: string, on: boolean): void => {
    const next = new Set(chosen);
    if (on && next.size < idsMax) next.add(id);
    else next.delete(id);
    setChosen(next);
  };
  // Rows that have left the list since are not acted on.
  const picked = chosen.size === 0 ? [] : (list.rows ?? []).filter((row) => chosen.has(row.executionId));
  const chooseAll = (): void => setChosen(new Set((list.rows ?? []).slice(0, idsMax).map((row) => row.executionId)));
  const query = queryOf(filter, Date.now());
  const path = filter.workflow ? address("/workflows/{id}/executions", { path: { id: filter.workflow }, query }) : address("/workflows/executions", { query });
  return (
    <>
      <div class="heading">
        <h1>Executions</h1>
        <div class="actions">
          <Saved />
          <Copy text={() => curl("GET", path)} label="Copy as curl" />
        </div>
      </div>
      <Filters filter={filter} workflows={workflows} />
      {list.error && <Problem error={list.error} retry={list.reload} />}
      {!list.rows && !list.error && <Loading what="executions" />}
      {list.rows && list.rows.length === 0 && list.fresh.length === 0 && (list.hasMore ? <NoneYet more={list.more} /> : <Nothing filter={filter} />)}
      {list.rows && list.rows.length + list.fresh.length > 0 && (
        <>
          <div class="note">
            {picked.length > 0 ? (
              <Bulk chosen={picked} clear={() => setChosen(new Set())} all={list.rows.length > picked.length && picked.length < idsMax ? chooseAll : undefined} act={(action) => setActing({ action, about: "", selection: { path: bulkPath, executionIds: picked.map((row) => row.executionId) } })} />
            ) : (
              <>
                <span role="status">
                  {number(list.rows.length)}
                  {list.hasMore && " and more"}, newest first
                </span>
                <button type="button" class="bare small" onClick={chooseAll}>
                  choose {list.hasMore || list.rows.length > idsMax ? `these ${number(Math.min(list.rows.length, idsMax))}` : "all"}
                </button>
                {!isEmpty(filter) && <BulkOfAll workflows={filter.workflow ? [filter.workflow] : list.rows.slice(0, pageSize).map((row) => row.workflowId)} act={(action) => setActing({ action, about: wordsOf(filter, workflows), selection: { path: address(bulkPath, { query: { ...query, ...(filter.workflow ? { workflowId: filter.workflow } : {}) } }) } })} />}
                {list.fresh.length > 0 && (
                  <button type="button" class="button" onClick={list.showFresh}>
                    {plural(list.fresh.length, "new execution")}
                    {list.fresh.length >= 100 && " or more"}: show
                  </button>
                )}
              </>
            )}
          </div>
          <Table
            label="Executions"
            columns={columns}
            rows={list.rows}
            id={(row) => row.executionId}
            href={(row) => to("executions", row.workflowId, row.executionId)}
            more={list.hasMore ? list.more : undefined}
            see={list.see}
            chosen={chosen}
            choose={choose}
          />
          {list.hasMore && <p class="note">Older ones follow as you scroll.</p>}
        </>
      )}
      {acting && <BulkDialog {...acting} close={() => setActing(null)} over={list.reload} left={() => setChosen(new Set())} />}
    </>
  );
}

/** Some pages were searched, and nothing found in them. */
function NoneYet({ more }: { more: () => void }) {
  return (
    <Empty title="None of those searched so far fits">
      <p>A search begins with the newest executions and stops after some thousands of them.</p>
      <p>
        <button type="button" class="button" onClick={more}>
          Search older ones
        </button>
      </p>
    </Empty>
  );
}

function Saved() {
  const names = Object.keys(saved.value);
  const [name, setName] = useState("");
  const text = place.value.query.toString();
  return (
    <Menu head="Saved filters">
        {names.length === 0 && <p class="quiet small">None yet. They stay in this browser.</p>}
        {names.map((each) => (
          <div key={each} class="actions">
            <a href={`${to("executions")}?${saved.value[each]}`}>
              <bdi>{each}</bdi>
            </a>
            <button
              type="button"
              class="bare small"
              aria-label={`Forget ${each}`}
              onClick={() => (saved.value = Object.fromEntries(Object.entries(saved.value).filter(([other]) => other !== each)))}
            >
              forget
            </button>
          </div>
        ))}
        <form
          class="actions"
          onSubmit={(event) => {
            event.preventDefault();
            if (name.trim()) saved.value = { ...saved.value, [name.trim()]: text };
            setName("");
          }}
        >
          <input type="text" aria-label="Name of this filter" placeholder="Name of this one" value={name} onInput={(event) => setName(event.currentTarget.value)} />
          <button type="submit" class="button">
            Save
          </button>
        </form>
    </Menu>
  );
}

function Nothing({ filter }: { filter: Filter }) {
  if (!isEmpty(filter)) {
    return (
      <Empty title="No execution fits">
        <p>
          Take something out of the filter, or <a href={to("executions")}>see all of them</a>.
        </p>
      </Empty>
    );
  }
  return (
    <Empty title="No workflow has run yet" command={curl("POST", "/workflows/expense-approval/execute", { input: { employee: "Ada", amount: 900 } })}>
      <p>Each run of a workflow is an execution. Every step of it is recorded, and stands here while it runs and afterwards.</p>
      <p>
        Choose one of the <a href={to("workflows")}>workflows</a> and start it there, or from a shell:
      </p>
    </Empty>
  );
}
