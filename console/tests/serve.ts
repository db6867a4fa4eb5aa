/** Serves the files of `dist` in front of a greenroom that was built with others. */

import { readFile } from "node:fs/promises";
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import { pipeline } from "node:stream";
import { fileURLToPath } from "node:url";

const dist = fileURLToPath(new URL("../dist/", import.meta.url));
const types: Record<string, string> = { js: "text/javascript", css: "text/css", svg: "image/svg+xml", txt: "text/plain; charset=utf-8", html: "text/html; charset=utf-8" };
const place = /<meta name="greenroom" content="[^"]*"/;

/** Starts it in front of `server` at a free port, or at `port`, and returns its address. */
export async function serve(server: string, port = 0): Promise<string> {
  const front = createServer((incoming, outgoing) => void answer(server, incoming, outgoing));
  await new Promise<void>((resolve) => front.listen(port, "127.0.0.1", resolve));
  if (port === 0) front.unref();
  const address = front.address();
  if (typeof address !== "object" || address === null) throw new Error("no address");
  return `http://127.0.0.1:${address.port}`;
}

async function answer(server: string, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const path = (incoming.url ?? "/").split("?")[0] ?? "/";
  if (path !== "/console" && !path.startsWith("/console/")) return forward(server, incoming, outgoing);
  const asset = /^\/console\/(assets\/[\w.-]+)$/.exec(path)?.[1];
  try {
    const bytes = await readFile(dist + (asset ?? "index.html"));
    const type = types[asset?.split(".").at(-1) ?? "html"] ?? "application/octet-stream";
    // the policy and the settings of its own page
    const own = await fetch(`${server}/console`);
    const meta = place.exec(await own.text())?.[0] ?? "";
    outgoing.writeHead(200, { "content-type": type, "content-security-policy": own.headers.get("content-security-policy") ?? "" });
    outgoing.end(asset ? bytes : bytes.toString().replace(place, () => meta));
  } catch {
    outgoing.writeHead(404).end();
  }
}

function forward(server: string, incoming: IncomingMessage, outgoing: ServerResponse): void {
  const onward = request(server + (incoming.url ?? ""), { method: incoming.method, headers: incoming.headers }, (answered) => {
    outgoing.writeHead(answered.statusCode ?? 502, answered.headers);
    outgoing.flushHeaders();
    // Also ends what the server left unfinished.
    pipeline(answered, outgoing, () => outgoing.destroy());
  });
  onward.on("error", () => outgoing.destroy());
  outgoing.on("close", () => onward.destroy());
  incoming.pipe(onward);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const address = await serve(process.env.GREENROOM ?? "http://127.0.0.1:3141", Number(process.env.PORT ?? 3700));
  console.log(`${address}/console`);
}
