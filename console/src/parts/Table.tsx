import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useKeys } from "../lib/hooks.ts";
import { isNarrow } from "../lib/narrow.ts";
import { go } from "../lib/router.ts";

export interface Column<T> {
  name: string;
  /** Name for the style: `status`, `wide`, … */
  kind: string;
  cell: (row: T) => ComponentChildren;
}

interface TableProps<T> {
  label: string;
  columns: Column<T>[];
  rows: T[];
  id: (row: T) => string;
  href: (row: T) => string;
  /** Called when the last rows come into view. */
  more?: (() => void) | undefined;
  /** Called with the rows that are drawn. */
  see?: (start: number, end: number) => void;
  /** Rows with boxes to choose them. */
  chosen?: ReadonlySet<string>;
  choose?: (id: string, on: boolean) => void;
}

/** Heights of a row; the style has the same. */
function rowHeight(): number {
  return isNarrow() ? 64 : 36;
}

/** Rows in the window of the page: only those that are seen are drawn, so that a list can be long. */
export function Table<T>({ label, columns, rows, id, href, more, see, chosen, choose }: TableProps<T>) {
  const body = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState({ start: 0, end: 40 });
  const [height, setHeight] = useState(rowHeight());

  useEffect(() => {
    const measure = (): void => {
      const each = rowHeight();
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const start = Math.max(0, Math.floor(-top / each) - 10);
      const end = Math.ceil((innerHeight - top) / each) + 10;
      setHeight(each);
      setRange((before) => (before.start === start && before.end === end ? before : { start, end }));
    };
    measure();
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, [rows.length]);

  useEffect(() => {
    if (more && range.end >= rows.length) more();
  }, [range.end, rows.length, more]);
  useEffect(() => see?.(range.start, range.end), [range]);

  const step = (by: number): void => {
    const links = [...(body.current?.querySelectorAll<HTMLElement>("[data-row]") ?? [])];
    const at = links.indexOf(document.activeElement as HTMLElement);
    links[Math.min(links.length - 1, Math.max(0, at < 0 && by < 0 ? 0 : at + by))]?.focus();
  };
  useKeys((event) => {
    if (event.key === "j") step(1);
    if (event.key === "k") step(-1);
  });

  const end = Math.min(rows.length, range.end);
  const start = Math.min(range.start, end);
  const style = `${columns.length}`;
  return (
    <div class="table" role="table" aria-label={label} aria-rowcount={rows.length + 1} data-columns={style}>
      <div class="thead" role="rowgroup">
        <div class="row" role="row">
          {choose && (
            <span class="cell box" role="columnheader">
              <span class="visually-hidden">Chosen</span>
            </span>
          )}
          {columns.map((column) => (
            <span key={column.name} class={`cell ${column.kind}`} role="columnheader">
              {column.name}
            </span>
          ))}
        </div>
      </div>
      <div class="tbody" role="rowgroup" ref={body} style={{ paddingTop: `${start * height}px`, paddingBottom: `${(rows.length - end) * height}px` }}>
        {rows.slice(start, end).map((row, index) => (
          <div
            key={id(row)}
            class="row"
            role="row"
            // j and k focus it; Tab goes to its link
            tabIndex={-1}
            data-row
            aria-rowindex={start + index + 2}
            onClick={(event) => {
              if (!(event.target as Element).closest("a,button,input,label") && !getSelection()?.toString()) go(href(row));
            }}
            onKeyDown={(event) => {
              if (event.key === "Enter" && event.target === event.currentTarget) go(href(row));
            }}
          >
            {choose && (
              <span class="cell box" role="cell">
                <input
                  type="checkbox"
                  aria-label={`Choose ${id(row)}`}
                  checked={chosen?.has(id(row)) ?? false}
                  onChange={(event) => choose(id(row), event.currentTarget.checked)}
                />
              </span>
            )}
            {columns.map((column) => (
              <span key={column.name} class={`cell ${column.kind}`} role="cell">
                {column.cell(row)}
              </span>
            ))}
          </div>
        ))}
      </div>
    </div>
  );
}
