// An MCP server over HTTP whose calls become tasks, which the SDK does not offer yet. Prints its address.

import { createServer } from "node:http";

const EXTENSION = "io.modelcontextprotocol/tasks";
const fresh = { resultType: "complete", ttlMs: 60_000, cacheScope: "private" };
const tasks = new Map();
const cancelled = [];
// looks after which long tasks end
let released = Infinity;

const tool = (name, inputSchema = { type: "object" }) => ({ name, description: `Does ${name}`, inputSchema });
const times = (task) => ({
  taskId: task.id,
  createdAt: "2026-11-20T00:00:00Z",
  lastUpdatedAt: "2026-11-20T00:00:00Z",
  ttlMs: null,
  pollIntervalMs: 50,
});
const size = {
  method: "elicitation/create",
  params: {
    mode: "form",
    message: "Which size?",
    requestedSchema: { type: "object", properties: { size: { type: "integer" } }, required: ["size"] },
  },
};
const text = (text) => ({ content: [{ type: "text", text }] });

/** The state of a task: it works for two looks, then asks if it has to, and shows its question once more after the answer. */
function state(task) {
  task.looks += 1;
  if (task.kind === "slow" || task.looks <= (task.kind === "long" ? released : 2)) return { status: "working" };
  if (task.kind === "refused") return { status: "failed", error: { code: -32602, message: "no paper" } };
  if (task.kind === "asking" && (!task.answer || task.stale-- > 0)) {
    return { status: "input_required", inputRequests: { size } };
  }
  return { status: "completed", result: text(`done ${JSON.stringify(task.answer ?? null)}`) };
}

function answer(method, params) {
  const task = tasks.get(params?.taskId);
  switch (method) {
    case "server/discover":
      return { ...fresh, supportedVersions: ["2026-07-28"], capabilities: { tools: {}, extensions: { [EXTENSION]: {} } } };
    case "tools/list":
      return { ...fresh, tools: ["plain", "asking", "refused", "slow", "long", "release", "count", "taken"].map((name) => tool(name)) };
    case "tools/call": {
      if (params.name === "count") {
        const structuredContent = { calls: tasks.size, looks: tasks.get("t1")?.looks, cancelled };
        return { resultType: "complete", structuredContent, content: [] };
      }
      if (params.name === "release") {
        released = 0;
        return { resultType: "complete", ...text("released") };
      }
      const offers = params._meta["io.modelcontextprotocol/clientCapabilities"].extensions ?? {};
      if (!(EXTENSION in offers)) return { ...text("no tasks"), isError: true };
      const made = { id: `t${tasks.size + 1}`, kind: params.name, looks: 0, stale: 1 };
      tasks.set(made.id, made);
      return { resultType: "task", status: "working", ...times(made) };
    }
    case "tasks/get":
      return task && { resultType: "complete", ...times(task), ...state(task) };
    case "tasks/update":
      if (task) task.answer = params.inputResponses.size;
      return task && { resultType: "complete" };
    case "tasks/cancel":
      cancelled.push(params.taskId);
      return { resultType: "complete" };
    default:
      return undefined;
  }
}

const http = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString() || "{}");
  if (method === "tools/call" && params.name === "taken") {
    response.writeHead(409, { "content-type": "text/plain" }).end("taken");
    return;
  }
  if (id === undefined) {
    response.writeHead(request.method === "POST" ? 202 : 405).end();
    return;
  }
  const result = answer(method, params);
  const body = result ? { jsonrpc: "2.0", id, result } : { jsonrpc: "2.0", id, error: { code: -32602, message: "unknown" } };
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
});
http.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
// ends with the test, also with one that is killed
process.stdin.on("end", () => process.exit(0)).resume();
