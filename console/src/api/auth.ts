import { signal } from "@preact/signals";
import { dropStored, stored } from "../lib/store.ts";

/** The token of this tab; it ends with the tab. */
export const token = stored("token", "", () => sessionStorage);

/** Set while a request waits for a token. */
export const wanted = signal<{ give: (token: string | null) => void; wasRefused: boolean } | null>(null);

let asking: Promise<boolean> | null = null;

/** Asks the person for a token, once for all requests that need one. False if there is none. */
export function askForToken(): Promise<boolean> {
  asking ??= new Promise<boolean>((resolve) => {
    wanted.value = {
      wasRefused: token.value !== "",
      give(text) {
        wanted.value = null;
        asking = null;
        if (text !== null) token.value = text;
        resolve(text !== null);
      },
    };
  });
  return asking;
}

/** Lets go of the token, and of all that was read with it. */
export function forgetToken(): void {
  dropStored("token", () => sessionStorage);
  location.reload();
}

export function authorization(): Record<string, string> {
  return token.value ? { authorization: `Bearer ${token.value}` } : {};
}
