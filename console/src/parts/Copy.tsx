import { useEffect, useState } from "preact/hooks";
import { copyText } from "../lib/clipboard.ts";

/** Copies, and says so in the place of its label. */
export function Copy({ text, label, class: kind = "button" }: { text: string | (() => string); label: string; class?: string }) {
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (!said) return;
    const timer = setTimeout(() => setSaid(""), 1500);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async (): Promise<void> => {
    const done = await copyText(typeof text === "string" ? text : text());
    setSaid(done ? "Copied" : "The browser does not allow it");
  };
  return (
    <button type="button" class={kind} onClick={() => void copy()} aria-live="polite">
      {said || label}
    </button>
  );
}
