/** Puts a text into the clipboard; false if the browser does not allow it. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

/** The old way, for pages without encryption: they have no clipboard. */
function copySelected(text: string): boolean {
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
