import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Icon } from "./icons.tsx";

/** A modal dialog of the browser: it keeps the focus, and Escape closes it. */
export function Dialog({ title, close, wide, children }: { title: string; close: () => void; wide?: boolean; children: ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null);
  // A text that is marked up to the outside is no press there.
  const isPressed = useRef(false);
  // Before the page is painted: what has the focus then gets it back.
  useLayoutEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement as HTMLElement | null;
    dialog?.showModal();
    dialog?.querySelector<HTMLElement>("input:not([type=checkbox]), select, textarea, form .primary")?.focus();
    return () => {
      dialog?.close();
      before?.focus();
      // What is behind a dialog can still be out of reach now.
      requestAnimationFrame(() => {
        if (document.activeElement === document.body) before?.focus();
      });
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={wide ? "wide" : ""}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onPointerDown={(event) => (isPressed.current = event.target === ref.current)}
      onClick={(event) => {
        if (event.target === ref.current && isPressed.current) close();
      }}
    >
      <div class="dialog">
        <header>
          <h2>{title}</h2>
          <button type="button" class="bare" onClick={close} aria-label="Close">
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
