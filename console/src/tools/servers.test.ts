import assert from "node:assert/strict";
import { test } from "node:test";
import type { McpServer, McpToolChanged, Tool } from "../api/types.ts";
import { changedParts, countsOf, otherTools, revealed, signOf, toolsOf, unmatchedText, whileChanged } from "./servers.ts";

function server(given: Partial<McpServer>): McpServer {
  return { name: "files", transport: "program", state: "ready", since: "2026-11-20T10:00:00Z", tools: [], leftOut: [], changed: [], unmatched: [], running: 0, lost: 0, calls: 0, failures: 0, ...given };
}

function tool(name: string): Tool {
  return { name, description: `Does ${name}`, parameters: {}, agents: [] };
}

function change(name: string, parts: McpToolChanged["parts"]): McpToolChanged {
  return { name, hash: "h", firstSeen: "2026-11-20T10:00:00Z", acceptedAt: "2026-11-20T10:00:00Z", parts };
}

test("a server has the tools that it lists, and those that are named and never seen", () => {
  const files = server({ tools: ["files.write", "files.read"], changed: [change("write", ["description"])] });
  const registered = [tool("filesystem"), tool("files.read"), tool("files.seek"), tool("refund")];
  assert.deepEqual(
    toolsOf(files, registered).map(({ own, tool: known, isListed, isChanged }) => [own, known?.name, isListed, isChanged]),
    [
      ["read", "files.read", true, false],
      ["seek", "files.seek", false, false],
      ["write", undefined, true, true],
    ],
  );
  assert.deepEqual(otherTools([files], registered).map(({ name }) => name), ["filesystem", "refund"]);
  assert.equal(otherTools([], registered).length, 4);
});

test("what tools say is read again when one of them may say something else", () => {
  const before = server({ tools: ["files.read"], calls: 1 });
  assert.equal(signOf(before), signOf({ ...before, running: 2, calls: 9, failures: 3 }));
  const write = change("write", ["description"]);
  const signs = [before, { ...before, tools: [] }, { ...before, since: "2026-11-20T11:00:00Z" }, { ...before, changed: [write] }, { ...before, changed: [{ ...write, hash: "h2" }] }].map(signOf);
  assert.equal(new Set(signs).size, signs.length);
});

test("counts and changes are words", () => {
  assert.equal(countsOf(server({ tools: ["files.read"] })), "1 tool");
  assert.equal(countsOf(server({ leftOut: [{ name: "a", reason: "b" }] })), "0 tools · 1 tool left out");
  assert.equal(changedParts(change("write", ["parameters"])), "arguments");
  assert.equal(changedParts(change("write", ["description", "parameters", "annotations"])), "description, arguments and hints about its effects");
});

test("what is left out until it is accepted is told from what waits for an approval", () => {
  const changed = change("write", ["result"]);
  assert.match(whileChanged(server({ changed: [changed] }), changed), /wait for an approval/);
  assert.match(whileChanged(server({ changed: [changed], leftOut: [{ name: "write", reason: "it has changed" }] }), changed), /left out/);
});

test("invisible letters are shown by their numbers", () => {
  for (const [text, shown] of [
    ["Writes a file\n\tat once: naïve, 你好, שלום, 👍", "Writes a file\n\tat once: naïve, 你好, שלום, 👍"],
    ["a\u202eb\u202c", "a\\u{202e}b\\u{202c}"],
    ["a\u200bb\u{e0041}", "a\\u{200b}b\\u{e0041}"],
    ["a\u2028b\u0000\r", "a\\u{2028}b\\u{0}\\u{d}"],
    ["a\ue000b", "a\\u{e000}b"],
  ] as const) {
    assert.equal(revealed(text), shown);
  }
});

test("a pattern without a tool says what follows", () => {
  assert.match(unmatchedText({ key: "approval", pattern: "write" }), /“approval” in the configuration has the pattern write,.*every call of an agent/);
  assert.doesNotMatch(unmatchedText({ key: "tools", pattern: "write_*" }), /every call/);
});
