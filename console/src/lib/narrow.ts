const query = typeof matchMedia === "undefined" ? null : matchMedia("(max-width: 720px)");

/** True in a window as wide as a phone. Styles have the same limit. */
export function isNarrow(): boolean {
  return query?.matches ?? false;
}
