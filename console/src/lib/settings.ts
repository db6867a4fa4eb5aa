import { effect } from "@preact/signals";
import { boot } from "./boot.ts";
import { stored } from "./store.ts";

export type Theme = "system" | "light" | "dark";

export const theme = stored<Theme>("theme", "system");

/** Name of the person who acts, on a server without tokens: sent as `options.userId`. */
export const actingAs = stored("actingAs", "");

export const absoluteTimes = stored("absoluteTimes", false);

/** `options` of a request that a person makes. With tokens the server knows who it is. */
export function actor(): { userId?: string } {
  const name = actingAs.value.trim();
  return !boot.auth && name ? { userId: name } : {};
}

export function applyTheme(): void {
  effect(() => {
    document.documentElement.style.colorScheme = theme.value === "system" ? "light dark" : theme.value;
  });
  if (boot.accent && /^#[0-9a-f]{6}$/i.test(boot.accent)) {
    document.documentElement.style.setProperty("--environment", boot.accent);
  }
}
