import { useMemo, useState } from "preact/hooks";
import { download } from "../lib/download.ts";
import { hasParts, Long, writeJson } from "../lib/json.ts";
import { bytes, number } from "../lib/text.ts";
import { Copy } from "./Copy.tsx";

/** Entries of a level that are shown at first; and letters of a text. */
const entriesShown = 50;
const lettersShown = 2000;
/** Letters of a text that is saved as a file in place of copied, and of which no more is drawn than this. */
const savedFrom = 200_000;

/** A JSON value as a tree that folds. Everything in it is text. */
export function Json({ value, open = 2, label }: { value: unknown; open?: number; label?: string }) {
  return (
    <div class="json" aria-label={label}>
      <Node value={value} depth={0} open={open} />
    </div>
  );
}

/** The same with a line above that copies and says the size. */
export function JsonBox({ value, title, open = 2 }: { value: unknown; title: string; open?: number }) {
  const text = useMemo(() => writeJson(value, 2) ?? "null", [value]);
  return (
    <div class="jsonbox">
      <header>
        <strong class="h3">{title}</strong>
        <span class="quiet small">{text.length > 1000 ? bytes(text.length) : ""}</span>
        {text.length > savedFrom ? (
          <button type="button" class="bare small" onClick={() => download(`${title.toLowerCase()}.json`, "application/json", text)}>
            Download
          </button>
        ) : (
          <Copy text={text} label="Copy" class="bare small" />
        )}
      </header>
      <Json value={value} open={text.length > 20_000 ? 1 : open} label={title} />
    </div>
  );
}

function Node({ name, value, depth, open }: { name?: string; value: unknown; depth: number; open: number }) {
  if (hasParts(value)) return <Branch name={name} value={value} depth={depth} open={open} />;
  return (
    <div class="leaf">
      <Name name={name} />
      <Plain value={value} />
    </div>
  );
}

function Name({ name }: { name: string | undefined }) {
  if (name === undefined) return null;
  return (
    <>
      <bdi class="name">{name}</bdi>
      <span class="quiet">: </span>
    </>
  );
}

function Plain({ value }: { value: unknown }) {
  return typeof value === "string" ? <Letters text={value} class="string" /> : <span class={value instanceof Long ? "number" : typeof value}>{String(value)}</span>;
}

/** A text of a caller, of which a long one is cut. */
export function Letters({ text, class: kind }: { text: string; class: string }) {
  const [all, setAll] = useState(false);
  if (text.length <= lettersShown || all) return <bdi class={kind}>{visible(text)}</bdi>;
  return (
    <>
      <bdi class={kind}>{visible(text.slice(0, lettersShown))}…</bdi>{" "}
      <button type="button" class="bare small" onClick={() => (text.length > savedFrom ? download("text.txt", "text/plain;charset=utf-8", text) : setAll(true))}>
        {text.length > savedFrom ? "download" : "show"} all {number(text.length)} letters
      </button>
    </>
  );
}

function Branch({ name, value, depth, open }: { name: string | undefined; value: object; depth: number; open: number }) {
  const entries = Object.entries(value);
  const isArray = Array.isArray(value);
  const [isOpen, setOpen] = useState(depth < open && entries.length > 0 && (depth === 0 || entries.length <= entriesShown));
  const [shown, setShown] = useState(entriesShown);
  const [start, end] = isArray ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0) {
    return (
      <div class="leaf">
        <Name name={name} />
        {start + end}
      </div>
    );
  }
  const what = isArray ? `${number(entries.length)} ${entries.length === 1 ? "item" : "items"}` : firstNames(entries);
  return (
    <div class="branch">
      <button type="button" class="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Name name={name} />
        {isOpen ? start : <span class="quiet">{`${start} ${what} ${end}`}</span>}
      </button>
      {isOpen && (
        <>
          <div class="entries">
            {entries.slice(0, shown).map(([key, item]) => (
              <Node key={key} name={key} value={item} depth={depth + 1} open={open} />
            ))}
            {entries.length > shown && (
              <button type="button" class="bare small" onClick={() => setShown(shown + 200)}>
                {number(entries.length - shown)} more
              </button>
            )}
          </div>
          <div>{end}</div>
        </>
      )}
    </div>
  );
}

function firstNames(entries: [string, unknown][]): string {
  const names = entries.slice(0, 4).map(([key]) => key);
  const text = names.join(", ");
  return (text.length > 60 ? `${text.slice(0, 60)}…` : text) + (entries.length > 4 ? ", …" : "");
}

/** Control characters as pictures, and those that turn others around as numbers: they would be invisible, or change what surrounds them. */
export function visible(text: string): string {
  return text
    .replace(/[\u0000-\u0008\u000b-\u001f]/g, (letter) => String.fromCharCode(0x2400 + letter.charCodeAt(0)))
    .replace(/\u007f/g, "\u2421")
    .replace(/[\u202d\u202e]/g, (letter) => `\\u{${letter.charCodeAt(0).toString(16)}}`);
}
