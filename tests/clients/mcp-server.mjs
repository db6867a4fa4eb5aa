// An MCP server over HTTP, of the newest version and, unless asked otherwise, of older ones: the official SDK.
// Prints its address. The argument is the bearer token that it asks for.

import { createServer } from "node:http";
import { McpServer, createMcpHandler, inputRequired } from "@modelcontextprotocol/server";
import * as z from "zod";

const [token, legacy = "stateless"] = process.argv.slice(2);

function server() {
  const server = new McpServer({ name: "tested", version: "1.0.0" });
  server.registerTool(
    "add",
    {
      description: "Adds two numbers",
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      outputSchema: z.object({ sum: z.number() }),
      annotations: { readOnlyHint: true },
    },
    async ({ a, b }) => {
      const structuredContent = { sum: a + b };
      return { structuredContent, content: [{ type: "text", text: JSON.stringify(structuredContent) }] };
    },
  );
  server.registerTool(
    "region",
    {
      description: "Tells the region of a header",
      inputSchema: z.object({ region: z.string() }),
    },
    async ({ region }) => ({ content: [{ type: "text", text: `in ${region}` }] }),
  );
  server.registerTool(
    "book",
    {
      description: "Books seats, after it has asked how many and for the payment",
      inputSchema: z.object({ film: z.string() }),
    },
    async ({ film }, { mcpReq }) => {
      const { seats, payment } = mcpReq.inputResponses ?? {};
      if (mcpReq.requestState() !== `s3aled-${film}` || !seats || !payment) {
        const requestedSchema = z.object({ seats: z.number().int().min(1).max(9), aisle: z.boolean().optional() });
        return inputRequired({
          inputRequests: {
            payment: inputRequired.elicitUrl({ message: "Pay", url: "https://pay.example/1" }),
            seats: inputRequired.elicit({ message: `How many seats for ${film}?`, requestedSchema }),
          },
          requestState: `s3aled-${film}`,
        });
      }
      return { content: [{ type: "text", text: `${film}: ${JSON.stringify({ payment, seats })}` }] };
    },
  );
  return server;
}

const handler = createMcpHandler(server, { legacy });

const http = createServer(async (request, response) => {
  if (request.headers.authorization !== `Bearer ${token}`) {
    response.writeHead(401, { "www-authenticate": "Bearer" }).end();
    return;
  }
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const aborted = new AbortController();
  response.on("close", () => aborted.abort());
  const answer = await handler.fetch(
    new Request(`http://127.0.0.1${request.url}`, {
      method: request.method,
      headers: Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
      body: chunks.length > 0 ? Buffer.concat(chunks) : undefined,
      signal: aborted.signal,
    }),
  );
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.flushHeaders();
  for await (const chunk of answer.body ?? []) response.write(chunk);
  response.end();
});
http.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
// ends with the test, also with one that is killed
process.stdin.on("end", () => process.exit(0)).resume();
