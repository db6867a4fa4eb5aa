import { curl, quote } from "../api/curl.ts";
import type { Agent, WorkflowDetail } from "../api/types.ts";
import { sample } from "./sample.ts";

/** A request that the page makes, with its answer. */
export interface Try {
  method: "GET" | "POST";
  path: string;
  body?: unknown;
  headers?: Record<string, string>;
  /** Effect besides reading, in words. */
  effect?: string;
}

export interface Snippet {
  title: string;
  steps: { text: string; code: string }[];
  tries?: Try;
}

/** Properties of this server on which the snippets depend. */
export interface Server {
  origin: string;
  /** It checks tokens. */
  auth: boolean;
  workflow: WorkflowDetail | undefined;
  /** An execution of the workflow, if there is one. */
  executionId: string | undefined;
  agent: Agent | undefined;
  hasMetrics: boolean;
  /** It sends telemetry to a collector; null if this caller may not know. */
  isExporting: boolean | null;
}

/** Returns the snippets with which programs reach this server. Those of what it does not have are left out. */
export function snippets(server: Server): Snippet[] {
  return [...ofWorkflow(server), ofInbox(server), ...ofAgent(server), ofDocument(server), ofReadiness(server), ...ofMetrics(server), ofTelemetry(server)];
}

/** A request as a command, with its headers and the token that this server wants. */
function command({ method, path, body, headers = {} }: Try, { origin, auth }: Server): string {
  const lines = Object.entries(headers).map(([name, value]) => ` \\\n  -H ${quote(`${name}: ${value}`)}`);
  if (auth) lines.push(' \\\n  -H "authorization: Bearer $TOKEN"');
  return curl(method, path, body, origin) + lines.join("");
}

/** The same for an answer that comes in parts: they are shown as they come. */
function streamed(call: Try, server: Server): string {
  return command(call, server).replace("curl -s ", "curl -sN ");
}

function ofWorkflow(server: Server): Snippet[] {
  const { workflow, executionId } = server;
  if (!workflow) return [];
  const path = `/workflows/${encodeURIComponent(workflow.id)}`;
  const body = { input: sample(workflow.inputSchema) };
  const start: Try = { method: "POST", path: `${path}/execute`, body, effect: "starts an execution" };
  const early: Try = { ...start, headers: { prefer: "respond-async" } };
  const both: Try = { method: "POST", path: `${path}/stream`, body, effect: "starts an execution" };
  const found: Snippet[] = [
    {
      title: "Start a workflow",
      steps: [
        { text: "Answers when it ends or waits for a person.", code: command(start, server) },
        { text: "Answers at once; the work continues.", code: command(early, server) },
      ],
      tries: early,
    },
    { title: "Start and follow", steps: [{ text: "Sends the events as they happen.", code: streamed(both, server) }], tries: both },
  ];
  if (executionId) {
    const follow: Try = { method: "GET", path: `${path}/executions/${encodeURIComponent(executionId)}/stream`, headers: { "last-event-id": "0" } };
    found.push({ title: "Follow an execution", steps: [{ text: "Events have numbers: after a lost connection, last-event-id continues behind the one that came last.", code: streamed(follow, server) }], tries: follow });
  }
  return found;
}

function ofInbox(server: Server): Snippet {
  const tries: Try = { method: "GET", path: "/inbox?limit=2" };
  return { title: "What waits for a person", steps: [{ text: "Questions of workflows and agents, the most urgent first.", code: command(tries, server) }], tries };
}

function ofAgent(server: Server): Snippet[] {
  const { agent, origin, auth } = server;
  if (!agent) return [];
  const path = `/agents/${encodeURIComponent(agent.id)}`;
  const effect = "asks the model";
  const ask: Try = { method: "POST", path: `${path}/text`, body: { input: "say hello" }, effect };
  const message = { id: "message-1", role: "user", parts: [{ type: "text", text: "say hello" }] };
  const chat: Try = { method: "POST", path: `${path}/chat`, body: { messages: [message] }, effect };
  const schema = { type: "object", required: ["name", "age"], properties: { name: { type: "string" }, age: { type: "number" } } };
  const object: Try = { method: "POST", path: `${path}/stream-object`, headers: { accept: "text/plain" }, body: { input: "Ada is 36", schema }, effect };
  const token = auth ? "authorization: `Bearer ${token}`" : "";
  return [
    { title: "Ask an agent", steps: [{ text: "Answers with the text and the tokens that it took.", code: command(ask, server) }], tries: ask },
    {
      title: "A chat with useChat",
      steps: [
        { text: "The AI SDK for React. The hook needs nothing but this address; approvals of tools come as parts of a message. A page of another site needs its origin in [cors].", code: "npm install ai @ai-sdk/react" },
        { text: "", code: chatPage(`${origin}${path}/chat`, token) },
      ],
      tries: chat,
    },
    {
      title: "An object with useObject",
      steps: [
        { text: "Shows the object while it is written.", code: "npm install ai @ai-sdk/react zod" },
        { text: "", code: objectPage(`${origin}${path}/stream-object`, token) },
      ],
      tries: object,
    },
  ];
}

function chatPage(api: string, token: string): string {
  return `import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport } from "ai";

export function Chat(${token && "{ token }: { token: string }"}) {
  const { messages, sendMessage } = useChat({
    transport: new DefaultChatTransport({
      api: ${JSON.stringify(api)},${token && `\n      headers: { ${token} },`}
    }),
  });
  return (
    <form action={(data) => void sendMessage({ text: String(data.get("text")) })}>
      {messages.map((message) => (
        <p key={message.id}>{message.parts.map((part) => (part.type === "text" ? part.text : ""))}</p>
      ))}
      <input name="text" />
    </form>
  );
}`;
}

function objectPage(api: string, token: string): string {
  return `import { experimental_useObject as useObject } from "@ai-sdk/react";
import { z } from "zod";

const schema = z.object({ name: z.string(), age: z.number() });

export function Person(${token && "{ token }: { token: string }"}) {
  const { object, submit } = useObject({
    api: ${JSON.stringify(api)},
    headers: { ${["Accept: \"text/plain\"", token].filter(Boolean).join(", ")} },
    schema,
  });
  const ask = () => submit({ input: "Ada is 36", schema: z.toJSONSchema(schema) });
  return <button onClick={ask}>{object ? JSON.stringify(object) : "Ask"}</button>;
}`;
}

function ofDocument(server: Server): Snippet {
  const tries: Try = { method: "GET", path: "/doc" };
  return {
    title: "A typed client",
    steps: [{ text: "The OpenAPI document has the workflows, agents and tools of this server.", code: `${command(tries, server)} -o openapi.json\nnpx openapi-typescript openapi.json -o greenroom.d.ts` }],
    tries,
  };
}

function ofReadiness(server: Server): Snippet {
  const tries: Try = { method: "GET", path: "/readyz" };
  return { title: "Whether it accepts work", steps: [{ text: "For load balancers and orchestrators. It needs no token.", code: command(tries, { ...server, auth: false }) }], tries };
}

function ofMetrics({ origin, auth, hasMetrics }: Server): Snippet[] {
  if (!hasMetrics) return [];
  const { host, protocol } = new URL(origin);
  const lines = ["scrape_configs:", "  - job_name: greenroom"];
  if (protocol === "https:") lines.push("    scheme: https");
  // Without a provider of tokens the key would only confuse.
  if (auth) lines.push("    authorization:", "      credentials_file: greenroom.token");
  lines.push("    static_configs:", `      - targets: ["${host}"]`);
  return [{ title: "Prometheus", steps: [{ text: "In prometheus.yml. Metrics are in the text format, at /metrics.", code: lines.join("\n") }], tries: { method: "GET", path: "/metrics" } }];
}

function ofTelemetry({ isExporting }: Server): Snippet {
  const state = isExporting === null ? "" : isExporting ? "This server sends telemetry to a collector. " : "This server sends no telemetry yet. ";
  return {
    title: "OpenTelemetry",
    steps: [
      { text: `${state}Traces, metrics and logs go to any collector that takes OTLP over HTTP. This one prints what it gets:`, code: "docker run --rm -p 127.0.0.1:4318:4318 otel/opentelemetry-collector" },
      { text: "In config.toml, in the section [telemetry], which may be there already. Restart the server.", code: '[telemetry]\nendpoint = "http://127.0.0.1:4318"' },
      { text: "Or in its environment:", code: "export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318\nexport OTEL_SERVICE_NAME=greenroom\ngreenroom serve" },
    ],
    ...(isExporting === null ? {} : { tries: { method: "GET", path: "/observability/status" } }),
  };
}
