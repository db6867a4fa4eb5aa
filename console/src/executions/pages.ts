import { useEffect, useRef, useState } from "preact/hooks";
import { token } from "../api/auth.ts";
import { get, type Input } from "../api/client.ts";
import { type ApiError, isRefused } from "../api/error.ts";
import { asError } from "../api/resource.ts";
import type { ExecutionItem } from "../api/types.ts";
import { isByEnd, type Filter, queryOf } from "./filter.ts";

/** Rows of the first page. */
export const pageSize = 100;
/** Behind the first page: as many as the API returns at once. */
const moreSize = 200;
/** The API has no subscription to lists: the first page, and that which is in view, are read again while somebody looks at them. */
const interval = 5000;
/** Milliseconds for which an answer is waited for: of a connection that is dead there may be none. */
const patience = 30_000;

/** A page of the API. */
export interface Page {
  executions: ExecutionItem[];
  nextCursor: string | null;
}

async function readPage(filter: Filter, cursor: string | null, signal?: AbortSignal): Promise<Page> {
  // The filter has only names that the API knows.
  const query: NonNullable<Input<"/workflows/executions", "get">["query"]> = { ...queryOf(filter, Date.now()), limit: cursor ? moreSize : pageSize, ...(cursor ? { cursor } : {}) };
  const input = { query, ...(signal ? { signal } : {}) };
  return filter.workflow ? get("/workflows/{id}/executions", { path: { id: filter.workflow }, ...input }) : get("/workflows/executions", input);
}

/** Pages that a search reads by itself while it finds nothing, at most. Each is one of 1,000 executions. */
const searchedMax = 10;

/** Reads on until a page has executions. Its own cursor comes with it. */
async function search(filter: Filter, from: string | null, signal?: AbortSignal): Promise<Page & { from: string | null }> {
  let cursor = from;
  let page = await readPage(filter, cursor, signal);
  for (let count = 1; count < searchedMax && page.executions.length === 0 && page.nextCursor !== null; count++) {
    cursor = page.nextCursor;
    page = await readPage(filter, cursor, signal);
  }
  return { ...page, from: cursor };
}

/** Rows behind the first page that were read together, and how they are read again. */
interface Part {
  cursor: string;
  /** Number of its first row. */
  start: number;
  /** Place of the row before it; its own are below that. */
  below: string;
}

/** Above all places: before the first row. */
const top = "\uffff";

/** Part of a list that is shown. */
export interface Shown {
  rows: ExecutionItem[] | null;
  fresh: ExecutionItem[];
  gone: ReadonlySet<string>;
  parts: readonly Part[];
  cursor: string | null;
  error: ApiError | null;
  at: number;
}

export interface List {
  rows: ExecutionItem[] | null;
  /** Begun since the list was read; shown when somebody asks. */
  fresh: ExecutionItem[];
  /** Rows that a list of now would not have: they no longer fit, or are no longer stored. */
  gone: ReadonlySet<string>;
  error: ApiError | null;
  hasMore: boolean;
  at: number;
  more: () => void;
  /** Has to be called with the rows that are in view. */
  see: (start: number, end: number) => void;
  showFresh: () => void;
  reload: () => void;
}

const nothing: Shown = { rows: null, fresh: [], gone: new Set(), parts: [], cursor: null, error: null, at: 0 };

type State = Shown & { key: string };

/** Pages of the list. Rows that are shown change in place; new ones wait, so that nothing jumps. */
export function useList(filter: Filter): List {
  const key = JSON.stringify(filter);
  const [state, setState] = useState<State>({ ...nothing, key });
  const [round, setRound] = useState(0);
  const isReading = useRef(false);
  const inView = useRef(0);
  const current = useRef(state);
  current.current = state;

  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const put = (change: (before: State) => State): void => {
      if (!signal.aborted) setState(change);
    };
    const first = async (): Promise<void> => {
      const page = await search(filter, null, signal);
      put(() => ({ key, ...appended({ ...nothing, rows: [], at: Date.now() }, page, (item) => placeOf(filter, item)) }));
    };
    const take = async (part: Part | undefined): Promise<void> => {
      const page = await readPage(filter, part?.cursor ?? null, signal);
      put((before) => (before.key === key ? { key, ...merge(before, page, part?.below ?? null, (item) => placeOf(filter, item)) } : before));
    };
    const again = async (): Promise<void> => {
      const { key: known, rows } = current.current;
      if (known !== key || rows === null) return first();
      await take(undefined);
      const part = current.current.parts.findLast(({ start }) => start <= inView.current);
      if (part) await take(part);
    };
    let busySince = 0;
    const beat = (read: () => Promise<void>): void => {
      // A slow answer is waited for: one that a newer one has overtaken would put rows back.
      if (busySince > 0 && Date.now() - busySince < patience) return;
      busySince = Date.now();
      read()
        .catch((failure: unknown) => {
          const error = asError(failure);
          put((before) => ({ ...before, error }));
          // A refusal stays one.
          if (isRefused(error)) clearInterval(timer);
        })
        .finally(() => (busySince = 0));
    };
    setState((before) => (before.key === key ? before : { ...nothing, key }));
    const timer = setInterval(() => {
      if (!document.hidden) beat(again);
    }, interval);
    beat(first);
    return () => {
      controller.abort();
      clearInterval(timer);
    };
  }, [key, round, token.value]);

  const more = (): void => {
    const asked = state.cursor;
    // After a failure the first page is read again before more is asked for.
    if (!asked || state.error || isReading.current) return;
    isReading.current = true;
    // What was asked of a list that has changed since does not belong to it.
    const isStill = (before: State): boolean => before.key === key && before.cursor === asked;
    search(filter, asked)
      .then((page) => setState((before) => (isStill(before) ? { key, ...appended(before, page, (item) => placeOf(filter, item)) } : before)))
      .catch((error: unknown) => setState((before) => (isStill(before) ? { ...before, error: asError(error) } : before)))
      .finally(() => (isReading.current = false));
  };
  return {
    ...state,
    rows: state.key === key ? state.rows : null,
    hasMore: state.cursor !== null,
    more,
    see: (start, end) => {
      inView.current = Math.floor((start + end) / 2);
    },
    showFresh: () => {
      // Between so many new ones and the others there may be more.
      if (state.fresh.length >= pageSize) setRound((n) => n + 1);
      else setState((before) => ({ key: before.key, ...withFresh(before, (item) => placeOf(filter, item)) }));
    },
    reload: () => setRound((n) => n + 1),
  };
}

/** The rows grow in place: a copy of a long list for each of its pages would be most of the work. */
function appended(before: Shown, { executions, nextCursor, from }: Page & { from: string | null }, placeOf: (item: ExecutionItem) => string): Shown {
  const all = before.rows ?? [];
  const last = all.at(-1);
  const part = from === null ? [] : [{ cursor: from, start: all.length, below: last ? placeOf(last) : top }];
  all.push(...executions);
  return { ...before, rows: all, parts: [...before.parts, ...part], cursor: nextCursor };
}

/** The list with its new executions where they belong. */
function withFresh(before: Shown, placeOf: (item: ExecutionItem) => string): Shown {
  const rows = [...before.fresh, ...(before.rows ?? [])].sort((a, b) => placeOf(b).localeCompare(placeOf(a)));
  return { ...before, rows, parts: before.parts.map((part) => ({ ...part, start: part.start + before.fresh.length })), fresh: [] };
}

/** The time that orders the list. */
function placeOf(filter: Filter, item: ExecutionItem): string {
  return isByEnd(filter) ? (item.endAt ?? "") : item.startAt;
}

/**
 * Takes a page that was read again, of rows below a place; null for the first. Rows change in place. Of the first
 * page, those that belong among them are fresh, also old ones that match only now. Rows that the page passes over
 * are gone.
 */
export function merge(before: Shown, { executions, nextCursor }: Page, below: string | null, placeOf: (item: ExecutionItem) => string): Shown {
  const news = new Map(executions.map((item) => [item.executionId, item]));
  const rows = before.rows ?? [];
  const gone = new Set(before.gone);
  const [oldest, last] = [rows.at(-1), executions.at(-1)];
  const from = oldest && before.cursor !== null ? placeOf(oldest) : "";
  // Behind its last execution the page says nothing, unless it is the end of the list.
  const isTold = (place: string): boolean => (below === null || place < below) && (nextCursor === null || (last !== undefined && place > placeOf(last)));
  for (const [index, row] of rows.entries()) {
    const item = news.get(row.executionId);
    if (item) {
      rows[index] = item;
      news.delete(row.executionId);
      gone.delete(row.executionId);
    } else if (isTold(placeOf(row))) {
      gone.add(row.executionId);
    } else if (news.size === 0 && last && placeOf(row) < placeOf(last)) break;
  }
  const fresh = below === null ? [...news.values()].filter((item) => placeOf(item) >= from) : before.fresh;
  return { ...before, rows, fresh, gone, error: null, at: Date.now() };
}
