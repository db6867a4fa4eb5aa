/** The program under test, in a folder of its own: started, killed, and started again on the same store. */

import { type ChildProcess, spawn } from "node:child_process";
import { appendFile, cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { serve } from "./serve.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const program = process.env.GREENROOM_PROGRAM ?? join(root, "target/debug/greenroom");

/** One of each kind of step, failures, retries, holds, agents that ask, and slow streams. */
export const everything = { "config.toml": join(root, "console/tests/config.toml"), "forms.json": join(root, "console/tests/forms.json") };

/** MCP servers, one of which ends at once, and an agent that uses the other one. */
export const servers = {
  files: { "mcp-server.mjs": join(root, "console/tests/mcp-server.mjs") },
  config: `
[mcp.desk]
command = ["node", "mcp-server.mjs"]
tools = ["*", "list_*"]
approval = ["write"]

[mcp.broken]
command = ["node", "mcp-server.mjs", "broken"]
restart = { delay = "1h", max_delay = "1h" }

[models.clerk]
provider = "mock"
rules = [
  { when = "tool_results", reply = "It said {{ tool_results[-1] }}" },
  { when = "'ORDER' in prompt", tool_call = { name = "desk.order", args = {} } },
  { when = "'SIGN' in prompt", tool_call = { name = "desk.sign", args = {} } },
  { when = "'READ' in prompt", tool_call = { name = "desk.read", args = {} } },
]

[agents.clerk]
model = "clerk"
tools = ["desk.read", "desk.order", "desk.sign", "desk.seek"]

[workflows.packing]
purpose = "Asks what belongs into the box"
steps = [{ id = "order", tool = "desk.order", args = {} }]
`,
};

/** What the repository ships. */
export const shipped = { "config.toml": join(root, "config.toml") };

export class Greenroom {
  /** Address of the server. */
  readonly base: string;
  /** Address of the console. */
  readonly console: string;

  private constructor(
    private readonly folder: string,
    private child: ChildProcess,
    private readonly port: number,
    console: string | undefined,
  ) {
    this.base = `http://127.0.0.1:${port}`;
    this.console = console ?? this.base;
  }

  /** Starts the program with these files in an empty folder, and with more of a configuration. */
  static async start(files: Record<string, string>, { config = "", environment = {} }: { config?: string; environment?: Record<string, string> } = {}): Promise<Greenroom> {
    const folder = await mkdtemp(join(tmpdir(), "greenroom-console-"));
    for (const [name, source] of Object.entries(files)) await cp(source, join(folder, name));
    await appendFile(join(folder, "config.toml"), `\n${config}`);
    const { child, port } = await run(folder, 0, environment);
    // Built files are tried before the program has them.
    const front = process.env.DIST ? await serve(`http://127.0.0.1:${port}`) : undefined;
    return new Greenroom(folder, child, port, front);
  }

  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exited = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGKILL");
    await exited;
  }

  /** Starts it again at the same port, on what it has stored. */
  async again(): Promise<void> {
    this.child = (await run(this.folder, this.port, {})).child;
  }

  async end(): Promise<void> {
    await this.kill();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Calls the API and returns its data. */
  async call<T>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<T> {
    const init: RequestInit = { method, headers: { "content-type": "application/json", ...headers } };
    if (body !== undefined) init.body = JSON.stringify(body);
    const response = await fetch(this.base + path, init);
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return (text.startsWith("{") ? (JSON.parse(text) as { data: T }).data : text) as T;
  }

  /** Starts an execution and returns its id. */
  async execute(workflow: string, input: unknown, options: object = {}): Promise<string> {
    const { executionId } = await this.call<{ executionId: string }>("POST", `/workflows/${workflow}/execute`, { input, options }, { prefer: "respond-async" });
    return executionId;
  }

  /** Waits until an execution has ended. */
  ended(workflow: string, id: string): Promise<State> {
    return eventually(`the end of ${id}`, async () => {
      const state = await this.call<State>("GET", `/workflows/${workflow}/executions/${id}/state`);
      return state.endAt === null ? undefined : state;
    });
  }
}

export interface State {
  status: string;
  endAt: string | null;
  traceId: string;
  input: unknown;
  result: unknown;
}

/** Waits until `found` returns something. */
export async function eventually<T>(what: string, found: () => Promise<T | undefined>, patience = 60_000): Promise<T> {
  for (const until = Date.now() + patience; Date.now() < until; ) {
    const value = await found();
    if (value !== undefined) return value;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${what} did not happen`);
}

async function run(folder: string, port: number, environment: Record<string, string>): Promise<{ child: ChildProcess; port: number }> {
  const child = spawn(program, ["--port", String(port)], { cwd: folder, env: { ...process.env, ...environment }, stdio: ["ignore", "ignore", "pipe"] });
  process.once("exit", () => child.kill("SIGKILL"));
  const said: string[] = [];
  if (!child.stderr) throw new Error("it has no log");
  const lines = createInterface(child.stderr);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`greenroom ended with ${code}:\n${said.join("\n")}`)));
    lines.on("line", (line) => {
      said.push(line);
      const found = /greenroom listens at http:\/\/[^\s"]*:(\d+)/.exec(line)?.[1];
      if (found) resolve({ child, port: Number(found) });
    });
  });
}
