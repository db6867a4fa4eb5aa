import { useState } from "preact/hooks";
import { copyText } from "../lib/clipboard.ts";
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
  const [said, setSaid] = useState("");
  const copy = async (): Promise<void> => {
    setSaid((await copyText(text)) ? "Copied" : "The browser does not allow it");
    setTimeout(() => setSaid(""), 1500);
  };
  return (
    <button type="button" class="bare" onClick={() => void copy()} aria-label={said || `Copy ${text}`} title={said || "Copy"}>
      {said ? <span class="small">{said}</span> : <Icon name="copy" />}
    </button>
  );
}
