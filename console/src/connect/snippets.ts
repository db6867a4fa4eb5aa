import { curl, quote } from "../api/curl.ts";
import type { Agent, WorkflowDetail } from "../api/types.ts";
import { asSchema, initial } from "../schema/schema.ts";

export interface Snippet {
  title: string;
  text: string;
  code: string;
  /** A request that only reads: it can be tried here. */
  tries?: string;
}

/** What programs need to reach this server, with its address. Only what it has is listed. */
export function snippets(origin: string, workflow: WorkflowDetail | undefined, agent: Agent | undefined, hasMetrics: boolean): Snippet[] {
  const found: Snippet[] = [];
  if (workflow) {
    const input = initial(asSchema(workflow.inputSchema) ?? {}) ?? {};
    const path = `/workflows/${encodeURIComponent(workflow.id)}`;
    found.push(
      { title: "Start a workflow", text: "Answers when it ends or waits. With the header prefer: respond-async it answers at once.", code: curl("POST", `${path}/execute`, { input }, origin) },
      { title: "Follow an execution", text: "Its events with numbers. After a lost connection, Last-Event-ID goes on where it was.", code: `curl -sN ${quote(`${origin}${path}/executions/EXECUTION_ID/stream`)} \\\n  -H 'Last-Event-ID: 0'` },
    );
  }
  found.push({ title: "What waits for a person", text: "Questions of workflows and agents, the most urgent first.", code: curl("GET", "/inbox", undefined, origin), tries: "/inbox?limit=2" });
  if (agent) {
    const path = `/agents/${encodeURIComponent(agent.id)}`;
    found.push(
      { title: "Ask an agent", text: "Answers with the text and what it cost.", code: curl("POST", `${path}/text`, { input: "say hello" }, origin) },
      {
        title: "A chat page with the AI SDK",
        text: "The hook speaks the stream of this route; approvals of tools come as parts of the message.",
        code: [
          'import { useChat } from "@ai-sdk/react";',
          'import { DefaultChatTransport } from "ai";',
          "",
          "const chat = useChat({",
          `  transport: new DefaultChatTransport({ api: ${JSON.stringify(`${origin}${path}/chat`)} }),`,
          "});",
        ].join("\n"),
      },
      {
        title: "An object as it is written",
        text: "The hook shows the parts of the object that are there.",
        code: [
          'import { experimental_useObject as useObject } from "@ai-sdk/react";',
          "",
          "const { object, submit } = useObject({",
          `  api: ${JSON.stringify(`${origin}${path}/stream-object?format=text`)},`,
          "  schema,",
          "});",
        ].join("\n"),
      },
    );
  }
  found.push(
    { title: "A typed client", text: "The OpenAPI document has the workflows, agents and tools of this server.", code: `npx openapi-typescript ${origin}/doc -o greenroom.d.ts`, tries: "/doc" },
    { title: "Whether it accepts work", text: "For load balancers and orchestrators.", code: curl("GET", "/readyz", undefined, origin), tries: "/readyz" },
  );
  if (hasMetrics) {
    const host = new URL(origin).host;
    found.push({ title: "Prometheus", text: "Metrics in the text format.", code: `scrape_configs:\n  - job_name: greenroom\n    static_configs:\n      - targets: ["${host}"]`, tries: "/metrics" });
  }
  return found;
}
