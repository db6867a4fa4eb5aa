import type { ComponentChildren } from "preact";
import { Copy } from "./Copy.tsx";

/** An empty view says what would be here, and how it gets here. */
export function Empty({ title, command, children }: { title: string; command?: string | undefined; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
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
