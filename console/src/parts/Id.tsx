import { useState } from "preact/hooks";
import { middle } from "../lib/text.ts";
import { Icon } from "./icons.tsx";

/** An id: shortened in the middle, whole on hover and in the clipboard. */
export function Id({ id, href, max = 16, copy = false }: { id: string; href?: string; max?: number; copy?: boolean }) {
  const text = middle(id, max);
  return (
    <span class="id">
      {href ? (
        <a href={href} title={id}>
          <bdi>{text}</bdi>
        </a>
      ) : (
        <bdi title={id}>{text}</bdi>
      )}
      {copy && <CopyIcon text={id} />}
    </span>
  );
}

function CopyIcon({ text }: { text: string }) {
  const [done, setDone] = useState(false);
  const copy = (): void => {
    void navigator.clipboard.writeText(text).then(() => setDone(true), () => undefined);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <button type="button" class="bare" onClick={copy} aria-label={done ? "Copied" : `Copy ${text}`} title={done ? "Copied" : "Copy"}>
      {done ? <span class="small">copied</span> : <Icon name="copy" />}
    </button>
  );
}
