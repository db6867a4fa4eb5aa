import { useEffect, useRef, useState } from "preact/hooks";
import { get, type Input } from "../api/client.ts";
import type { ApiError } from "../api/error.ts";
import { asError } from "../api/resource.ts";
import type { ExecutionItem } from "../api/types.ts";
import { isByEnd, type Filter, queryOf } from "./filter.ts";

/** Rows of the first page. */
export const pageSize = 100;
/** Behind the first page: as many as the API returns at once. */
const moreSize = 200;
/** The API has no subscription to lists: the first page is read again while somebody looks at it. */
const interval = 5000;

interface Page {
  executions: ExecutionItem[];
  nextCursor: string | null;
}

async function readPage(filter: Filter, cursor: string | null): Promise<Page> {
  // The filter has only names that the API knows.
  const query: NonNullable<Input<"/workflows/executions", "get">["query"]> = { ...queryOf(filter, Date.now()), limit: cursor ? moreSize : pageSize, ...(cursor ? { cursor } : {}) };
  return filter.workflow ? get("/workflows/{id}/executions", { path: { id: filter.workflow }, query }) : get("/workflows/executions", { query });
}

/** Pages that a search reads by itself while it finds nothing, at most. Each is one of 1,000 executions. */
const searchedMax = 10;

/** Reads on until a page has executions. */
async function search(filter: Filter, from: string | null): Promise<Page> {
  let page = await readPage(filter, from);
  for (let count = 1; count < searchedMax && page.executions.length === 0 && page.nextCursor !== null; count++) page = await readPage(filter, page.nextCursor);
  return page;
}

export interface List {
  rows: ExecutionItem[] | null;
  /** Begun since the list was read; shown when somebody asks. */
  fresh: ExecutionItem[];
  error: ApiError | null;
  hasMore: boolean;
  at: number;
  more: () => void;
  showFresh: () => void;
  reload: () => void;
}

/** Pages of the list. Rows that are shown change in place; new ones wait, so that nothing jumps. */
export function useList(filter: Filter): List {
  const key = JSON.stringify(filter);
  const [state, setState] = useState<{ key: string; rows: ExecutionItem[] | null; fresh: ExecutionItem[]; cursor: string | null; error: ApiError | null; at: number }>({ key, rows: null, fresh: [], cursor: null, error: null, at: 0 });
  const [round, setRound] = useState(0);
  const isReading = useRef(false);

  useEffect(() => {
    let isCurrent = true;
    const fail = (error: unknown): void => {
      if (isCurrent) setState((before) => ({ ...before, error: asError(error) }));
    };
    const first = async (): Promise<void> => {
      const page = await search(filter, null);
      if (isCurrent) setState({ key, rows: page.executions, fresh: [], cursor: page.nextCursor, error: null, at: Date.now() });
    };
    const again = async (): Promise<void> => {
      if (document.hidden) return;
      const page = await readPage(filter, null);
      if (isCurrent) setState((before) => merge(before, page.executions, (item) => placeOf(filter, item)));
    };
    setState((before) => (before.key === key ? before : { key, rows: null, fresh: [], cursor: null, error: null, at: 0 }));
    first().catch(fail);
    const timer = setInterval(() => void again().catch(fail), interval);
    return () => {
      isCurrent = false;
      clearInterval(timer);
    };
  }, [key, round]);

  const more = (): void => {
    const asked = state.cursor;
    // After a failure the first page is read again before more is asked for.
    if (!asked || state.error || isReading.current) return;
    isReading.current = true;
    // What was asked of a list that has changed since does not belong to it.
    const isStill = (before: { key: string; cursor: string | null }): boolean => before.key === key && before.cursor === asked;
    search(filter, asked)
      .then((page) => setState((before) => (isStill(before) ? { ...before, rows: appended(before.rows, page.executions), cursor: page.nextCursor } : before)))
      .catch((error: unknown) => setState((before) => (isStill(before) ? { ...before, error: asError(error) } : before)))
      .finally(() => (isReading.current = false));
  };
  return {
    ...state,
    rows: state.key === key ? state.rows : null,
    hasMore: state.cursor !== null,
    more,
    showFresh: () => {
      // Between so many new ones and the others there may be more.
      if (state.fresh.length >= pageSize) setRound((n) => n + 1);
      else setState((before) => ({ ...before, rows: [...before.fresh, ...(before.rows ?? [])].sort((a, b) => placeOf(filter, b).localeCompare(placeOf(filter, a))), fresh: [] }));
    },
    reload: () => setRound((n) => n + 1),
  };
}

/** The rows grow in place: a copy of a long list for each of its pages would be most of the work. */
function appended(rows: ExecutionItem[] | null, page: readonly ExecutionItem[]): ExecutionItem[] {
  const all = rows ?? [];
  all.push(...page);
  return all;
}

/** The time that orders the list. */
function placeOf(filter: Filter, item: ExecutionItem): string {
  return isByEnd(filter) ? (item.endAt ?? "") : item.startAt;
}

/** Takes what was read again: rows change in place, and those that belong among them are fresh, also old ones that match only now. */
export function merge<T extends { rows: ExecutionItem[] | null; fresh: ExecutionItem[]; cursor: string | null; error: ApiError | null; at: number }>(before: T, page: ExecutionItem[], placeOf: (item: ExecutionItem) => string): T {
  const news = new Map(page.map((item) => [item.executionId, item]));
  const rows = before.rows ?? [];
  const oldest = rows.at(-1);
  const from = oldest && before.cursor !== null ? placeOf(oldest) : "";
  for (let index = 0; index < rows.length && news.size > 0; index++) {
    const id = rows[index]?.executionId ?? "";
    const item = news.get(id);
    if (!item) continue;
    rows[index] = item;
    news.delete(id);
  }
  const fresh = [...news.values()].filter((item) => placeOf(item) >= from);
  return { ...before, rows, fresh, error: null, at: Date.now() };
}
