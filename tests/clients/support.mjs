// What the tests share: the server's address, the releases under test, a page and a hook in it.

import { JSDOM } from "jsdom";

export const BASE = process.env.GREENROOM_URL;
if (!BASE) throw new Error("GREENROOM_URL is not set; run cargo test --test it clients::");

/** Each release of `ai` with the React hooks that belong to it. */
export const RELEASES = await Promise.all(
  [5, 6, 7].map(async (major) => ({
    name: `ai ${major}`,
    ai: await import(`ai${major}`),
    hooks: () => import(`ai${major}-react`),
  })),
);

export const api = (agent, what = "chat") => `${BASE}/agents/${agent}/${what}`;

/** An id that no other test has. */
export const freshId = () => `c-${crypto.randomUUID()}`;

export const user = (text) => ({ id: freshId(), role: "user", parts: [{ type: "text", text }] });

export const textOf = (message) =>
  message.parts.filter((part) => part.type === "text").map((part) => part.text).join("");

export const toolOf = (message) => message.parts.find((part) => part.type.startsWith("tool-"));

/** The body of a server that knows nothing of the SDK's own body. */
export const namedBody = (userId) => ({ messages, id }) => ({
  body: { input: [messages.at(-1)], options: { userId, conversationId: id } },
});

/** A chat's messages as the server keeps them. */
export async function storedIn(id, agent, userId) {
  const query = new URLSearchParams({ agentId: agent, ...(userId && { userId }) });
  return (await data(`/api/memory/conversations/${id}/messages?${query}`)).messages;
}

export async function data(path) {
  const response = await fetch(`${BASE}${path}`);
  const body = await response.json();
  if (!body.success) throw new Error(`${path}: ${response.status} ${body.error}`);
  return body.data;
}

/** Asks until `holds`: for what the server does after its client has gone. */
export async function eventually(what, ask, holds) {
  const deadline = Date.now() + 10_000;
  for (;;) {
    const answer = await ask();
    if (holds(answer)) return answer;
    if (Date.now() > deadline) throw new Error(`never happened: ${what}: ${JSON.stringify(answer)}`);
  }
}

/** Makes this process a browser as far as React looks; before react-dom is loaded. */
export function openPage() {
  const { window } = new JSDOM("<!doctype html><main></main>", { url: BASE });
  const names = { window, document: window.document, navigator: window.navigator };
  for (const [name, value] of Object.entries(names)) {
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  }
}

/** Renders a component that does nothing but use a hook. */
export async function mount(useHook) {
  const { createElement } = await import("react");
  const { createRoot } = await import("react-dom/client");
  const watchers = new Set();
  let current;
  function Component() {
    current = useHook();
    queueMicrotask(() => watchers.forEach((look) => look()));
    return null;
  }
  const root = createRoot(document.createElement("main"));
  root.render(createElement(Component));

  /** Resolves with what the hook gives as soon as it `holds`. */
  const until = (what, holds) =>
    new Promise((resolve, reject) => {
      const late = () => {
        watchers.delete(look);
        reject(new Error(`never happened: ${what}: ${JSON.stringify(current)}`));
      };
      const timer = setTimeout(late, 20_000);
      const look = () => {
        if (current === undefined || !holds(current)) return;
        clearTimeout(timer);
        watchers.delete(look);
        resolve(current);
      };
      watchers.add(look);
      look();
    });
  await until("the first rendering", () => true);
  return { now: () => current, until, unmount: () => root.unmount() };
}
