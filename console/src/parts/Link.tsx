import { signal } from "@preact/signals";
import { type Link, links } from "../api/follow.ts";
import { now } from "../lib/time.ts";
import { lasting } from "./Time.tsx";

/** True if the browser thinks that it has a network. */
export const online = signal(typeof navigator === "undefined" || navigator.onLine);
if (typeof addEventListener !== "undefined") {
  addEventListener("online", () => (online.value = true));
  addEventListener("offline", () => (online.value = false));
}

/** A connection that is back at once is no news. */
const tolerance = 1500;

const worst = ["lost", "refused", "connecting", "live", "ended"] as const;

/** The subscription that is worst off. */
function current(): Link | null {
  const all = [...links.value.values()];
  for (const kind of worst) {
    const found = all.find((link) => link.kind === kind);
    if (found) return found;
  }
  return null;
}

function stateOf(link: Link | null): [string, string] {
  if (!link || link.kind === "ended") return ["idle", "as read"];
  if (link.kind === "live") return ["live", "connected"];
  if (link.kind === "connecting") return ["connecting", "connecting"];
  if (link.kind === "refused") return ["lost", "not live"];
  return now.value - link.since < tolerance ? ["connecting", "connecting"] : ["lost", "not connected"];
}

/** In the top bar: whether what is shown follows the server. */
export function LinkState() {
  const link = current();
  const [kind, text] = stateOf(link);
  const help: Record<string, string> = {
    idle: "This page shows what was read; nothing on it changes by itself",
    live: "The inbox and executions change as it happens, lists within seconds",
    connecting: "Connecting",
    lost: "Changes are not shown",
  };
  return (
    <span class={`link ${kind}`} role="status" title={help[kind]}>
      <span class="dot" aria-hidden="true" />
      {text}
    </span>
  );
}

/** A line below the top bar while the connection is lost. */
export function LinkLine() {
  const link = current();
  if (link?.kind === "refused" && link.error.status !== 404) {
    return (
      <div class="linkline" role="alert">
        Not live: <bdi>{link.error.message}</bdi>. What is shown does not change by itself.
      </div>
    );
  }
  if (link?.kind !== "lost" || now.value - link.since < tolerance) return null;
  const wait = Math.max(0, Math.ceil((link.retryAt - now.value) / 1000));
  return (
    <div class="linkline">
      {/* The seconds are not read out, one after the other. */}
      <span class="visually-hidden" role="alert">
        No connection. What is shown may be old.
      </span>
      No connection for {lasting(now.value - link.since)}. What is shown is as old as that. {wait > 0 ? `Next try in ${wait} s.` : "Trying…"}
      {!online.value && " This browser has no network."}
    </div>
  );
}
