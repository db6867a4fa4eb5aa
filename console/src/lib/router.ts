import { computed, signal } from "@preact/signals";

/** The page is served below this path. */
export const base = "/console";

interface Place {
  path: string;
  query: URLSearchParams;
}

function here(): Place {
  return { path: location.pathname, query: new URLSearchParams(location.search) };
}

export const place = signal<Place>(here());

/** Parts of the path behind `/console`, decoded. */
export const parts = computed(() =>
  place.value.path
    .slice(base.length)
    .split("/")
    .filter((part) => part !== "")
    .map(decode),
);

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of a view. */
export function to(...names: string[]): string {
  return [base, ...names.map(encodeURIComponent)].join("/");
}

export function go(address: string, how: "push" | "replace" = "push"): void {
  if (how === "push") history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  const before = place.value.path;
  place.value = here();
  if (before !== place.value.path) window.scrollTo(0, 0);
}

export function param(name: string): string {
  return place.value.query.get(name) ?? "";
}

/** Changes the query of the address; empty values leave it. */
export function setParams(values: Record<string, string>, how: "push" | "replace" = "replace"): void {
  const query = new URLSearchParams(place.value.query);
  for (const [name, value] of Object.entries(values)) {
    if (value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  go(place.value.path + (text ? `?${text}` : ""), how);
}

/** Links of the console change the view, not the document. */
export function startRouter(): void {
  addEventListener("popstate", () => {
    place.value = here();
  });
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest("a");
    if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
    if (link.pathname !== base && !link.pathname.startsWith(`${base}/`)) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}
