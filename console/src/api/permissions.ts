import { effect, signal } from "@preact/signals";
import { boot } from "../lib/boot.ts";
import { actingAs } from "../lib/settings.ts";
import { token } from "./auth.ts";
import { get } from "./client.ts";

/** Requests of one question, at most: a proxy may refuse longer addresses than these make. */
const askedMax = 25;

/** Reasons for which the token may not make a request, by method and route; empty if it may. */
const known = signal<ReadonlyMap<string, string>>(new Map());
/** User of the token, once the server has said it. */
const tokenUser = signal("");
const asked = new Set<string>();
let waiting = new Map<string, string>();

effect(() => {
  // Another token may do other things.
  if (token.value !== undefined) known.value = new Map();
  tokenUser.value = "";
  asked.clear();
});

/**
 * Returns the reason for which the server refuses a request of the token; empty if it does not, and until it has answered.
 * Without a token there is nothing to say: the request asks for one.
 */
export function refusalOf(method: string, path: string): string {
  if (!boot.auth || token.value === "" || path === "") return "";
  const route = routeOf(method, path);
  if (!asked.has(route)) {
    asked.add(route);
    if (waiting.size === 0) queueMicrotask(() => void ask());
    waiting.set(route, `${method} ${path.replace(/\?.*/, "")}`);
  }
  return known.value.get(route) ?? "";
}

/** The user whom the server takes the caller for; empty if there is none, or it is not known yet. */
export function me(): string {
  return boot.auth ? tokenUser.value : actingAs.value.trim();
}

async function ask(): Promise<void> {
  const [routes, requests] = [[...waiting.keys()], [...waiting.values()]];
  waiting = new Map();
  const mine = token.value;
  for (let from = 0; from < requests.length; from += askedMax) {
    const answer = await get("/whoami", { query: { request: requests.slice(from, from + askedMax) } }).catch(() => null);
    if (!answer || token.value !== mine) return;
    tokenUser.value = answer.userId ?? "";
    const reasons = answer.requests.map(({ reason }, n) => [routes[from + n] ?? "", reason ?? ""] as const);
    known.value = new Map([...known.value, ...reasons]);
  }
}

/** The route of a path, without the ids of what is acted on: rules name routes and workflows, not executions. */
export function routeOf(method: string, path: string): string {
  return `${method} ${path.replace(/\/(executions|inbox|generations)\/[^/]+/, "/$1/:").replace(/\?.*/, "")}`;
}
