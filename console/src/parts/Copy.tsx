import { useEffect, useState } from "preact/hooks";

async function write(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return writeSelected(text);
  }
}

/** The old way, for pages without encryption: they have no clipboard. */
function writeSelected(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  // a dialog makes everything outside of it inert
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  const before = document.activeElement as HTMLElement | null;
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  before?.focus();
  return done;
}

/** Copies, and says so in the place of its label. */
export function Copy({ text, label, class: kind = "button" }: { text: string | (() => string); label: string; class?: string }) {
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (!said) return;
    const timer = setTimeout(() => setSaid(""), 1500);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async (): Promise<void> => {
    const done = await write(typeof text === "string" ? text : text());
    setSaid(done ? "Copied" : "The browser does not allow it");
  };
  return (
    <button type="button" class={kind} onClick={() => void copy()} aria-live="polite">
      {said || label}
    </button>
  );
}
