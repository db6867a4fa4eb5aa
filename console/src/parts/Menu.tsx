import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

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
