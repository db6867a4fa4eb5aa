import type { LogEntry } from "../api/types.ts";

/** A record with a number of its own, so that it stays the same row while others come before it. */
export interface Numbered {
  key: number;
  entry: LogEntry;
}

export interface Tail {
  /** Newest first. */
  lines: Numbered[];
  /** Cursor of what is older than the last line; null if nothing is. */
  cursor: string | null;
}

export interface Page {
  /** Newest last, as the server answers. */
  data: LogEntry[];
  nextCursor: string | null;
}

/** More lines than this begin anew with the newest. */
const linesMax = 3000;

export function startOf(page: Page): Tail {
  return { lines: numbered(page.data.toReversed(), 0), cursor: page.nextCursor };
}

/** Returns the number of records of the newest page that are not in the list; null if others between them are not in the page. */
export function newIn(tail: Tail, page: Page): number | null {
  const first = tail.lines[0];
  if (!first) return page.data.length;
  const found = page.data.toReversed();
  const at = found.findIndex((entry, index) => isSame(entry, first.entry) && follows(found, index, tail.lines));
  return at < 0 ? null : at;
}

/** The list with what the newest page adds before it. */
export function withNewest(tail: Tail, page: Page): Tail {
  const added = newIn(tail, page);
  if (added === 0) return tail;
  if (added === null || tail.lines.length + added > linesMax) return startOf(page);
  const from = (tail.lines[0]?.key ?? 0) + added;
  return { lines: [...page.data.toReversed().slice(0, added).map((entry, index) => ({ key: from - index, entry })), ...tail.lines], cursor: tail.lines.length > 0 ? tail.cursor : page.nextCursor };
}

/** The list with an older page behind it. */
export function withOlder(tail: Tail, page: Page): Tail {
  return { lines: [...tail.lines, ...numbered(page.data.toReversed(), tail.lines.at(-1)?.key ?? 0)], cursor: page.nextCursor };
}

function numbered(entries: LogEntry[], before: number): Numbered[] {
  return entries.map((entry, index) => ({ key: before - 1 - index, entry }));
}

function isSame(a: LogEntry, b: LogEntry): boolean {
  return a.timestamp === b.timestamp && a.msg === b.msg && a.component === b.component && a.executionId === b.executionId;
}

/** Equal records can follow one another: the one behind it must fit as well. */
function follows(found: LogEntry[], index: number, lines: Numbered[]): boolean {
  const [next, second] = [found[index + 1], lines[1]?.entry];
  return !next || !second || isSame(next, second);
}
