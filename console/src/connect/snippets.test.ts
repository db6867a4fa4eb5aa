import assert from "node:assert/strict";
import { test } from "node:test";
import type { Agent, WorkflowDetail } from "../api/types.ts";
import { parseJson, writeJson } from "../lib/json.ts";
import { validate } from "../schema/validate.ts";
import { sample } from "./sample.ts";
import { type Server, snippets } from "./snippets.ts";

const workflow = { id: "a b", inputSchema: { type: "object", required: ["who"], properties: { who: { type: "string" } } } } as unknown as WorkflowDetail;
const full: Server = { origin: "https://green.example", auth: false, workflow, executionId: "e-1", agent: { id: "assistant" } as Agent, hasMetrics: true, isExporting: false };

function codeOf(server: Server, title: string): string {
  return snippets(server).find((item) => item.title === title)?.steps.map(({ code }) => code).join("\n") ?? "";
}

test("only what the server has is listed", () => {
  const all = snippets(full).map((item) => item.title);
  const few = snippets({ ...full, workflow: undefined, agent: undefined, hasMetrics: false }).map((item) => item.title);
  assert.deepEqual(
    all.filter((title) => !few.includes(title)),
    ["Start a workflow", "Start and follow", "Follow an execution", "Ask an agent", "A chat with useChat", "An object with useObject", "Prometheus"],
  );
  assert.equal(codeOf({ ...full, executionId: undefined }, "Follow an execution"), "");
});

test("commands have the address, an input that fits, and a token where one is wanted", () => {
  assert.equal(codeOf(full, "Start and follow"), `curl -sN 'https://green.example/workflows/a%20b/stream' \\\n  -H 'content-type: application/json' \\\n  -d '{"input":{"who":"text"}}'`);
  assert.match(codeOf({ ...full, auth: true }, "Ask an agent"), /-H "authorization: Bearer \$TOKEN"$/);
  assert.doesNotMatch(codeOf({ ...full, auth: true }, "Whether it accepts work"), /TOKEN/);
  assert.match(codeOf({ ...full, auth: true }, "A chat with useChat"), /headers: \{ authorization: `Bearer \$\{token\}` \}/);
});

test("Prometheus asks as this page does", () => {
  assert.equal(codeOf(full, "Prometheus"), 'scrape_configs:\n  - job_name: greenroom\n    scheme: https\n    static_configs:\n      - targets: ["green.example"]');
  assert.match(codeOf({ ...full, auth: true }, "Prometheus"), /credentials_file/);
});

test("samples fit their schema", () => {
  const schema = {
    type: "object",
    required: ["name", "code", "amount", "at", "kind", "lines", "payment", "sure"],
    properties: {
      name: { type: "string" },
      code: { type: "string", minLength: 6 },
      amount: { type: "number", exclusiveMinimum: 5 },
      at: { type: "string", format: "date-time" },
      kind: { enum: ["food", "travel"] },
      lines: { type: "array", minItems: 1, items: { $ref: "#/$defs/line" } },
      payment: { oneOf: [{ type: "object", required: ["card"], properties: { card: { type: "string" } } }, { type: "null" }] },
      sure: { type: "boolean" },
      note: { type: "string" },
    },
    $defs: { line: { type: "object", required: ["price"], properties: { price: { type: "integer", maximum: 0 } } } },
  };
  const value = sample(schema);
  assert.deepEqual(validate(schema, value), []);
  assert.equal((value as { note?: string }).note, undefined);
  assert.deepEqual(sample({ ...schema, examples: [{ name: "too little" }] }), value, "examples that do not fit are left out");
});

test("an example is within bounds of 64 bits", () => {
  const bounds = [
    ['{"maximum":9223372036854775807}', "1"],
    ['{"exclusiveMinimum":9007199254740993}', "9007199254740994"],
    ['{"exclusiveMinimum":0}', "1"],
  ];
  for (const [bound = "", expected] of bounds) {
    const schema = parseJson(bound.replace("{", '{"type":"integer",'));
    assert.equal(writeJson(sample(schema)), expected, bound);
  }
});
