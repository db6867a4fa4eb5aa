/** Puts texts that a page could run, hide or turn around into every field that callers choose. */

export const nasty = [
  '<img src=x onerror="window.planted=1;alert(1)">',
  "<script>window.planted=2;alert(2)</script>",
  '"><svg onload="window.planted=3">',
  "javascript:window.planted=4",
  "\u0000\u0007\u001b[31mcontrol\u007f",
  "\u202Eright-to-left\u202C \u05E9\u05DC\u05D5\u05DD",
  "👩‍👩‍👧‍👦 e\u0301 \uFEFF zero\u200Bwidth",
  `long${"x".repeat(3000)}`,
];

export interface Planted {
  waiting: string;
  failed: string;
  completed: string;
  held: string;
  many: string;
  question: string;
  approval: string;
  chat: string;
  user: string;
  trace: string;
}

/** Users have no slashes and no control characters; the rest of the API takes any text. */
const user = '<img src=x onerror="window.planted=5">\u202E';

async function call<T>(server: string, method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<T> {
  const init: RequestInit = { method, headers: { "content-type": "application/json", ...headers } };
  if (body !== undefined) init.body = JSON.stringify(body);
  const response = await fetch(server + path, init);
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return (text.startsWith("{") ? (JSON.parse(text) as { data: T }).data : text) as T;
}

/** Waits until `found` returns something. */
async function eventually<T>(what: string, found: () => Promise<T | undefined>): Promise<T> {
  for (const until = Date.now() + 20_000; Date.now() < until; ) {
    const value = await found();
    if (value !== undefined) return value;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${what} did not happen`);
}

export async function plant(server: string): Promise<Planted> {
  const run = `walk-${Date.now()}`;
  const start = async (workflow: string, input: unknown, id: string): Promise<string> => {
    const options = { executionId: `${run}-${id}`, userId: user, context: { note: nasty } };
    await call(server, "POST", `/workflows/${workflow}/execute`, { input, options }, { prefer: "respond-async" });
    return `${run}-${id}`;
  };
  const ended = (workflow: string, id: string): Promise<object> =>
    eventually(`the end of ${id}`, async () => {
      const state = await call<{ endAt: string | null; traceId: string }>(server, "GET", `/workflows/${workflow}/executions/${id}/state`);
      return state.endAt === null ? undefined : state;
    });
  for (const [index, text] of nasty.entries()) await start("expense-approval", { employee: text, amount: 900 }, `text-${index}`);
  const waiting = await start("expense-approval", { employee: nasty.slice(0, 7).join(" "), amount: 900 }, "waiting");
  const failed = await start("flaky", { note: nasty.join(" ") }, "failed");
  const completed = await start("trip", { city: nasty.join(" "), nights: 3 }, "completed");
  const held = await start("reminder", { text: nasty.join(" ") }, "held");
  const many = await start("bulk", { count: 300 }, "many");
  await call(server, "POST", `/workflows/reminder/executions/${held}/suspend`, { reason: nasty.join(" "), options: { userId: user } });
  const cancelled = await start("reminder", { text: "x" }, "cancelled");
  await call(server, "POST", `/workflows/reminder/executions/${cancelled}/cancel`, { reason: nasty[0], options: { userId: user } });
  await ended("flaky", failed);
  await ended("bulk", many);
  const { traceId } = (await ended("trip", completed)) as { traceId: string };

  const chat = `${run}-chat`;
  await call(server, "POST", "/agents/assistant/chat", { input: `REFUND large ${nasty.join(" ")}`, options: { conversationId: chat, userId: user } });
  const asks = await eventually("the questions", async () => {
    const { asks } = await call<{ asks: { askId: string; kind: string; of: { executionId?: string } }[] }>(server, "GET", "/inbox?limit=200");
    return asks.some((ask) => ask.kind === "approval") && asks.some((ask) => ask.of.executionId === waiting) ? asks : undefined;
  });
  return {
    waiting,
    failed,
    completed,
    held,
    many,
    question: asks.find((ask) => ask.of.executionId === waiting)?.askId ?? "",
    approval: asks.find((ask) => ask.kind === "approval")?.askId ?? "",
    chat,
    user,
    trace: traceId,
  };
}
