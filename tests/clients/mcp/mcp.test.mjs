// MCP's own clients, with a handshake and without, against /mcp.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { BASE, data } from "../support.mjs";

const ADDRESS = new URL(`${BASE}/mcp`);
const INFO = { name: "greenroom-tests", version: "1" };
const FORMS = { elicitation: { form: {} } };

/** Opens each client; `ask` answers forms. */
const CLIENTS = {
  "sdk 1, with a handshake": async () => {
    const client = new OldClient(INFO, { capabilities: {} });
    await client.connect(new OldTransport(ADDRESS));
    return client;
  },
  "client 2, with a handshake": async () => {
    const client = new Client(INFO, { capabilities: {} });
    await client.connect(new StreamableHTTPClientTransport(ADDRESS));
    return client;
  },
  "client 2, without": async (ask) => {
    const client = new Client(INFO, {
      capabilities: ask ? FORMS : {},
      versionNegotiation: { mode: "auto" },
    });
    if (ask) client.setRequestHandler("elicitation/create", ask);
    await client.connect(new StreamableHTTPClientTransport(ADDRESS));
    assert.equal(client.getNegotiatedProtocolVersion(), "2026-07-28");
    return client;
  },
};

const call = (client, name, args = {}) => client.callTool({ name, arguments: args });

const textOf = (result) => result.content.map((block) => block.text).join("");

for (const [name, open] of Object.entries(CLIENTS)) {
  describe(name, () => {
    let client;
    before(async () => (client = await open()));
    after(() => client.close());

    test("lists what the face offers", async () => {
      const { tools } = await client.listTools();
      const names = tools.map((tool) => tool.name);
      assert.deepEqual(names, [
        "agent_cashier", "agent_echo", "workflow_broken", "workflow_desk", "workflow_desk_resume", "workflow_expense", "workflow_expense_resume",
        "workflow_greet", "workflow_nested", "workflow_nested_resume", "workflow_number",
        "workflow_others", "workflow_others_resume", "workflow_slow", "workflow_word",
        "workflow_word_resume",
      ]);
      const greet = tools.find((tool) => tool.name === "workflow_greet");
      assert.equal(greet.description, "Greets someone");
      assert.deepEqual(greet.inputSchema.required, ["who"]);
    });

    test("calls a workflow", async () => {
      const result = await call(client, "workflow_greet", { who: "Ada" });
      assert.deepEqual(result.structuredContent, { text: "Hello, Ada", letters: 10 });
      assert.deepEqual(JSON.parse(textOf(result)), result.structuredContent);
      const id = result._meta["greenroom/executionId"];
      const state = await data(`/workflows/greet/executions/${id}/state`);
      assert.equal(state.status, "completed");
    });

    test("reads an execution", async () => {
      const { resourceTemplates } = await client.listResourceTemplates();
      assert.equal(resourceTemplates.length, 1);
      assert.deepEqual((await client.listResources()).resources, []);
      const result = await call(client, "workflow_greet", { who: "Ada" });
      const id = result._meta["greenroom/executionId"];
      const template = resourceTemplates[0].uriTemplate;
      const uri = template.replace("{workflow}", "greet").replace("{id}", id);
      const { contents } = await client.readResource({ uri });
      assert.equal(JSON.parse(contents[0].text).result.letters, 10);
      for (const missing of [uri + "x", "file:///etc/passwd"]) {
        await assert.rejects(client.readResource({ uri: missing }), /not found/i);
      }
    });

    test("calls a workflow whose result is no object", async () => {
      const result = await call(client, "workflow_number");
      assert.equal(textOf(result), "42");
    });

    test("reads what is wrong with arguments", async () => {
      const result = await call(client, "workflow_greet", { who: 5 });
      assert.equal(result.isError, true);
      assert.match(textOf(result), /who/);
    });

    test("reads that a workflow failed", async () => {
      const result = await call(client, "workflow_broken");
      assert.equal(result.isError, true);
      assert.match(textOf(result), /failed at the step fall/);
    });

    test("asks an agent", async () => {
      const result = await call(client, "agent_echo", { prompt: "Hi" });
      assert.equal(textOf(result), "Hi!");
      assert.equal(result.structuredContent.status, "completed");
      const failed = await call(client, "agent_echo", { prompt: "FAIL" });
      assert.equal(failed.isError, true);
      assert.match(failed._meta["greenroom/generationId"], /./);
    });

    test("is refused what the face does not offer", async () => {
      for (const hidden of ["agent_hidden", "workflow_plain", "workflow_none", "", "x"]) {
        await assert.rejects(call(client, hidden), /unknown tool/);
      }
    });

    test("sees progress", async () => {
      const seen = [];
      const options = { onprogress: (progress) => seen.push(progress) };
      const request = { name: "workflow_greet", arguments: { who: "Ada" } };
      const result = client instanceof OldClient
        ? await client.callTool(request, undefined, options)
        : await client.callTool(request, options);
      assert.equal(result.structuredContent.letters, 10);
      const messages = seen.map((progress) => progress.message);
      assert.deepEqual(messages.at(-1), "count completed");
      assert.deepEqual(seen.map((it) => it.progress), seen.map((_, index) => index + 1));
    });

    test("answers with a tool what a workflow waits for", async () => {
      const waiting = await call(client, "workflow_expense", { amount: 900 });
      const { executionId, status, ask } = waiting.structuredContent;
      assert.equal(status, "suspended");
      assert.equal(ask.reason, "Approve 900?");
      assert.deepEqual(ask.payload, { amount: 900 });
      assert.match(textOf(waiting), /workflow_expense_resume/);
      const resume = (answer) =>
        call(client, "workflow_expense_resume", { executionId, data: answer });
      const wrong = await resume({ approved: "yes" });
      assert.equal(wrong.isError, true);
      assert.match(textOf(wrong), /approved/);
      const done = await resume({ approved: true });
      assert.deepEqual(done.structuredContent, { approved: true, note: "" });
      // the same again: what is true now
      const again = await resume({ approved: false });
      assert.deepEqual(again.structuredContent, { approved: true, note: "" });
    });

    test("learns that others have to answer", async () => {
      const waiting = await call(client, "workflow_others");
      const { executionId, ask } = waiting.structuredContent;
      assert.equal(ask.mayAnswer, false);
      const refused = await call(client, "workflow_others_resume", { executionId, data: 1 });
      assert.equal(refused.isError, true);
      assert.match(textOf(refused), /Others are asked/);
    });
  });
}

describe("a client with forms", () => {
  const asked = [];
  let answers;
  let client;
  before(async () => {
    client = await CLIENTS["client 2, without"]((request) => {
      asked.push(request.params);
      return answers.shift();
    });
  });
  after(() => client.close());

  test("answers what a workflow waits for", async () => {
    answers = [{ action: "accept", content: { approved: true, note: "fine" } }];
    const result = await call(client, "workflow_expense", { amount: 7 });
    assert.deepEqual(result.structuredContent, { approved: true, note: "fine" });
    const { message, requestedSchema } = asked.at(-1);
    assert.match(message, /Approve 7\?/);
    assert.deepEqual(requestedSchema, {
      type: "object",
      properties: {
        approved: { type: "boolean", title: "Approve?" },
        note: { type: "string", maxLength: 20 },
      },
      required: ["approved"],
    });
  });

  test("is asked again after a wrong answer", async () => {
    answers = [
      { action: "accept", content: { approved: true, note: "much longer than it may be" } },
      { action: "accept", content: { approved: false } },
    ];
    const result = await call(client, "workflow_expense", { amount: 8 });
    assert.deepEqual(result.structuredContent, { approved: false, note: "" });
    assert.match(asked.at(-1).message, /note/);
  });

  test("may decline, and the workflow goes on waiting", async () => {
    answers = [{ action: "decline" }];
    const result = await call(client, "workflow_expense", { amount: 9 });
    assert.equal(result.structuredContent.status, "suspended");
    assert.match(textOf(result), /did not answer\. Do not ask again now/);
  });

  test("answers with one value", async () => {
    answers = [
      { action: "accept", content: { answer: "a" } },
      { action: "accept", content: { answer: "yes" } },
    ];
    const result = await call(client, "workflow_word");
    assert.equal(textOf(result), "yes");
  });

  test("approves calls of an agent, and answers its questions", async () => {
    answers = [
      { action: "accept", content: { approved: true } },
      { action: "accept", content: { answer: "Broken" } },
    ];
    const result = await call(client, "agent_cashier", { prompt: "REFUND" });
    assert.equal(result.structuredContent.status, "completed", textOf(result));
    assert.equal(textOf(result), "42;Broken;");
    assert.match(asked.at(-2).message, /Refund 500\?/);
    answers = [{ action: "decline" }];
    const waiting = await call(client, "agent_cashier", { prompt: "REFUND" });
    assert.equal(waiting.structuredContent.status, "suspended");
    assert.equal(waiting.structuredContent.asks.length, 2);
  });

  test("approves calls of an agent in a step, and answers its questions", async () => {
    answers = [
      { action: "accept", content: { approved: true } },
      { action: "accept", content: { answer: "Broken" } },
    ];
    const result = await call(client, "workflow_desk");
    assert.match(textOf(result), /42;Broken;/);
    assert.match(asked.at(-2).message, /Refund 500\?/);
    answers = [{ action: "decline" }];
    const waiting = await call(client, "workflow_desk");
    assert.equal(waiting.structuredContent.status, "suspended");
    assert.match(textOf(waiting), /answered in the inbox/);
  });

  test("gets answers without a form as a tool", async () => {
    const waiting = await call(client, "workflow_nested");
    assert.equal(waiting.structuredContent.status, "suspended");
    const { executionId, ask } = waiting.structuredContent;
    const answer = { executionId, askId: ask.askId, data: { lines: ["a"] } };
    const done = await call(client, "workflow_nested_resume", answer);
    assert.deepEqual(done.structuredContent, ["a"]);
  });
});
