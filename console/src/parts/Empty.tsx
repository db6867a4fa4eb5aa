import type { ComponentChildren } from "preact";
import { Copy } from "./Copy.tsx";

/** An empty view says what would be here, and how it gets here. */
export function Empty({ title, command, isPage, children }: { title: string; command?: string | undefined; isPage?: boolean; children?: ComponentChildren }) {
  return (
    <div class="empty">
      {isPage ? <h1>{title}</h1> : <h2>{title}</h2>}
      {children}
      {command && <Snippet text={command} />}
    </div>
  );
}

export function Snippet({ text, label = "Copy" }: { text: string; label?: string }) {
  return (
    <div class="snippet">
      <pre tabIndex={0}>{text}</pre>
      <Copy text={text} label={label} />
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <p class="quiet loading" role="status">
      Reading {what}…
    </p>
  );
}
