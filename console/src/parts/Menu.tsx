import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** Room between a menu and the edge of the window. */
const edge = 12;

/** A menu ends where its button ends, unless it would begin outside of the window. */
function place(menu: HTMLDetailsElement): void {
  const box = menu.querySelector<HTMLElement>(":scope > div");
  if (!box || !menu.open) return;
  box.style.right = "";
  const { left } = box.getBoundingClientRect();
  if (left < edge) box.style.right = `${left - edge}px`;
}

/** A button that opens what is below it. Escape, and a click or focus elsewhere, close it. */
export function Menu({ head, label, children }: { head: ComponentChildren; label?: string; children: ComponentChildren }) {
  const ref = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (event: Event): void => {
      const menu = ref.current;
      if (menu?.open && !menu.contains(event.target as Node)) menu.open = false;
    };
    addEventListener("pointerdown", close);
    addEventListener("focusin", close);
    return () => {
      removeEventListener("pointerdown", close);
      removeEventListener("focusin", close);
    };
  }, []);
  return (
    <details
      class="menu"
      ref={ref}
      onToggle={(event) => place(event.currentTarget)}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.currentTarget.open = false;
        event.currentTarget.querySelector("summary")?.focus();
      }}
    >
      <summary class="button" aria-label={label}>
        {head}
      </summary>
      <div>{children}</div>
    </details>
  );
}
