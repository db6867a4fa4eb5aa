import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

/** Runs `act` for keys that no field takes. */
export function useKeys(act: (event: KeyboardEvent) => void): void {
  const current = useRef(act);
  current.current = act;
  // Before the page is painted: what is seen can be used.
  useLayoutEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      const target = event.target as HTMLElement;
      const types = /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable;
      if (types || event.altKey || event.metaKey || event.ctrlKey || event.defaultPrevented) return;
      if (document.querySelector("dialog[open]")) return;
      current.current(event);
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);
}

/** Moves the focus through the links of a list with j and k. */
export function useListKeys(): RefObject<HTMLUListElement | null> {
  const list = useRef<HTMLUListElement>(null);
  useKeys((event) => {
    if (event.key !== "j" && event.key !== "k") return;
    const links = [...(list.current?.querySelectorAll<HTMLElement>("li > a") ?? [])];
    const at = links.indexOf(document.activeElement as HTMLElement);
    links[Math.max(0, Math.min(links.length - 1, at + (event.key === "j" ? 1 : -1)))]?.focus();
  });
  return list;
}

/** Names the page in the tab and in the history. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${title} · greenroom` : "greenroom";
  }, [title]);
}
