import { computed, signal } from "@preact/signals";
import { get } from "../api/client.ts";
import { type ApiError, isRefused } from "../api/error.ts";
import { follow } from "../api/follow.ts";
import { asError } from "../api/resource.ts";
import type { Ask, AskEvent } from "../api/types.ts";
import { byUrgency, change } from "./asks.ts";

interface Inbox {
  asks: Map<string, Ask>;
  /** Closed while the page was open: they fold away where they were. */
  closed: Map<string, Ask>;
  /** True if more are open than were read. */
  more: boolean;
  at: number;
  error: ApiError | null;
  /** Refusal of the server; null for a caller who may see it. */
  refused: ApiError | null;
  overflow: boolean;
}

export const inbox = signal<Inbox>({ asks: new Map(), closed: new Map(), more: false, at: 0, error: null, refused: null, overflow: false });

export const openAsks = computed(() => byUrgency([...inbox.value.asks.values()]));

/** As many as a page has; the server returns no larger one. */
const pageMax = 200;

/** As many as are read, page by page: the most urgent ones. */
export const readMax = 2000;

/** Events that came before the list, and at most so many: then the list is read again. */
let early: AskEvent[] = [];
const earlyMax = 10_000;
let isRead = false;
/** Events that came behind the list, and are shown together in a moment: of many at once, each would be a list. */
let late: AskEvent[] = [];
let scheduled: ReturnType<typeof setTimeout> | undefined;
const lateMs = 50;
/** Number of the newest read: an older one that ends later does not count. */
let reads = 0;

/** Closed questions that are remembered. */
const closedMax = 200;

const retryMs = 5000;

/** Follows the inbox for as long as the page lives: the rail shows its count. */
export function startInbox(): void {
  follow("/inbox/stream", {
    onOpen: () => {
      // What is missing in between is in the list.
      [early, late] = [[], []];
      if (inbox.peek().refused) inbox.value = { ...inbox.peek(), refused: null };
      void read();
    },
    onFrame: (frame) => {
      const event = JSON.parse(frame.data) as AskEvent;
      // News that come before the list are newer than the list.
      if (!isRead) {
        if (early.length < earlyMax) early.push(event);
        return;
      }
      late.push(event);
      scheduled ??= setTimeout(flush, lateMs);
    },
    onRefused: (refused) => {
      inbox.value = { ...inbox.peek(), refused };
    },
  });
}

function flush(): void {
  scheduled = undefined;
  const events = late;
  late = [];
  if (events.length > 0) inbox.value = applied(inbox.peek(), events);
}

/** Reads open asks up to a limit; `true` if there are more. */
export async function readAsks(query: { to?: string }, signal?: AbortSignal): Promise<[Ask[], boolean]> {
  const asks: Ask[] = [];
  let cursor: string | null = null;
  do {
    const page: { asks: Ask[]; nextCursor: string | null } = await get("/inbox", { query: { ...query, limit: pageMax, ...(cursor ? { cursor } : {}) }, ...(signal ? { signal } : {}) });
    asks.push(...page.asks);
    cursor = page.nextCursor;
  } while (cursor && asks.length < readMax);
  return [asks, cursor !== null];
}

export async function read(): Promise<void> {
  const mine = ++reads;
  // What comes from here on may be newer than the list.
  flush();
  isRead = false;
  try {
    const [list, more] = await readAsks({});
    if (mine !== reads) return;
    const asks = new Map(list.map((ask) => [ask.askId, ask]));
    const isCut = early.length >= earlyMax;
    inbox.value = applied({ ...inbox.peek(), asks, more, at: Date.now(), error: null, overflow: false }, early);
    early = [];
    isRead = true;
    if (isCut) await read();
  } catch (error) {
    if (mine !== reads) return;
    inbox.value = { ...inbox.peek(), error: asError(error) };
    // A refusal stays one.
    if (!isRefused(asError(error))) setTimeout(() => mine === reads && void read(), retryMs);
  }
}

/** Takes note of an ask that was read by itself: the stream can be a second behind. */
export function learn(ask: Ask): void {
  if (inbox.peek().asks.has(ask.askId)) inbox.value = applied(inbox.peek(), [{ type: "answered", ask }]);
}

function applied(before: Inbox, events: readonly AskEvent[]): Inbox {
  const [asks, closed] = [new Map(before.asks), new Map(before.closed)];
  let { overflow } = before;
  for (const { type, ask } of events) {
    if (type === "overflow" || !ask) overflow = true;
    else change(asks, closed, ask);
  }
  for (const oldest of closed.keys()) {
    if (closed.size <= closedMax) break;
    closed.delete(oldest);
  }
  return { ...before, asks, closed, overflow, at: Date.now() };
}
