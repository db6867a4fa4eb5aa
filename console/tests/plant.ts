/** Puts texts that a page could run, hide or turn around into every field that callers choose. */

import { eventually, type Greenroom } from "./greenroom.ts";

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
  broken: string;
  completed: string;
  held: string;
  many: string;
  question: string;
  approval: string;
  /** Questions of an MCP server. */
  form: string;
  page: string;
  chat: string;
  user: string;
  trace: string;
}

/** Users have no slashes and no control characters; the rest of the API takes any text. */
const user = '<img src=x onerror="window.planted=5">\u202E';

export async function plant(server: Greenroom): Promise<Planted> {
  const context = { note: nasty };
  const start = (workflow: string, input: unknown, executionId: string): Promise<string> => server.execute(workflow, input, { executionId, userId: user, context });
  const act = (id: string, verb: string, reason: string): Promise<unknown> => server.call("POST", `/workflows/reminder/executions/${id}/${verb}`, { reason, options: { userId: user } });

  for (const [index, text] of nasty.entries()) await start("expense-approval", { employee: text, amount: 900 }, `text-${index}`);
  const waiting = await start("expense-approval", { employee: nasty.slice(0, 7).join(" "), amount: 900 }, "waiting");
  const failed = await start("flaky", { note: nasty.join(" ") }, "failed");
  const broken = await start("letter", { text: nasty.join(" ") }, "broken");
  const completed = await start("trip", { city: nasty.join(" "), nights: 3 }, "completed");
  const many = await start("bulk", { count: 300 }, "many");
  const held = await start("reminder", { text: nasty.join(" ") }, "held");
  await act(held, "suspend", nasty.join(" "));
  const cancelled = await start("reminder", { text: "x" }, "cancelled");
  await act(cancelled, "cancel", nasty[0] ?? "");
  await server.ended("flaky", failed);
  await server.ended("letter", broken);
  await server.ended("bulk", many);
  const { traceId } = await server.ended("trip", completed);

  const chat = "planted-chat";
  const ask = (input: string): Promise<unknown> => server.call("POST", "/agents/assistant/chat", { input, options: { conversationId: chat, userId: user } });
  // a result of a tool, and then an approval
  await ask(`REFUND small ${nasty.join(" ")}`);
  await ask(`REFUND large ${nasty.join(" ")}`);
  // a tool of an MCP server that has changed, and its questions
  await eventually("the MCP servers", async () => {
    const servers = await server.call<{ state: string }[]>("GET", "/tools/mcp");
    return servers.every(({ state }) => state !== "connecting") ? servers : undefined;
  });
  await server.call("POST", "/tools/desk.renew/execute", { input: {} });
  const questionOf = async (input: string): Promise<string> => {
    const { asks } = await server.call<{ asks: { askId: string }[] }>("POST", "/agents/clerk/text", { input });
    return asks[0]?.askId ?? "";
  };
  const [form, page] = [await questionOf("ORDER"), await questionOf("SIGN")];
  const asks = await eventually("the questions", async () => {
    const { asks } = await server.call<{ asks: { askId: string; kind: string; of: { executionId?: string } }[] }>("GET", "/inbox?limit=200");
    return asks.some((ask) => ask.kind === "approval") && asks.some((ask) => ask.of.executionId === waiting) ? asks : undefined;
  });
  return {
    waiting,
    failed,
    broken,
    completed,
    held,
    many,
    question: asks.find((ask) => ask.of.executionId === waiting)?.askId ?? "",
    approval: asks.find((ask) => ask.kind === "approval")?.askId ?? "",
    form,
    page,
    chat,
    user,
    trace: traceId,
  };
}
