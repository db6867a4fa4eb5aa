// OpenAI's own client for JavaScript, whole answers and streams.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import OpenAI from "openai";

import { data, eventually, freshId } from "../support.mjs";

const client = new OpenAI({ baseURL: `${process.env.GREENROOM_URL}/v1`, apiKey: "none" });

const say = (content) => [{ role: "user", content }];

const map = {
  type: "function",
  function: {
    name: "map",
    description: "Shows a city",
    parameters: { type: "object", properties: { city: { type: "string" } } },
  },
};

/** Asks whole and as a stream; gives both answers in the same form. */
async function ask(body) {
  const whole = await client.chat.completions.create(body);
  const stream = client.chat.completions.stream({ ...body, stream_options: { include_usage: true } });
  const streamed = await stream.finalChatCompletion();
  return [whole, streamed].map((completion) => ({
    usage: completion.usage,
    reason: completion.choices[0].finish_reason,
    ...completion.choices[0].message,
  }));
}

describe("models", () => {
  test("are the agents and workflows that are offered", async () => {
    const ids = (await client.models.list()).data.map((model) => model.id);
    const workflows = ["workflow/approval", "workflow/broken", "workflow/double"];
    assert.deepEqual(ids, ["assistant", "bare", "cashier", "failing", ...workflows]);
    for (const id of ["assistant", "workflow/double"]) {
      const model = await client.models.retrieve(id);
      assert.deepEqual([model.id, model.object, model.owned_by], [id, "model", "greenroom"]);
      assert.ok(model.created > 1_700_000_000);
    }
    await assert.rejects(client.models.retrieve("hidden"), { status: 404, code: "model_not_found" });
  });
});

describe("an agent", () => {
  test("answers whole and in pieces", async () => {
    for (const answer of await ask({ model: "assistant", messages: say("hello there") })) {
      assert.equal(answer.content, "You said: hello there");
      assert.equal(answer.reason, "stop");
      assert.ok(answer.usage.total_tokens > 0);
    }
  });

  test("calls its own tools, which the client does not see", async () => {
    for (const answer of await ask({ model: "assistant", messages: say("ADD") })) {
      assert.equal(answer.content, "It is 7.");
      assert.equal(answer.tool_calls, undefined);
      assert.equal(answer.reason, "stop");
    }
  });

  test("leaves calls of the client's tools to the client, and goes on with their results", async () => {
    for (const prompt of ["MAP", "BOTH"]) {
      const messages = say(prompt);
      for (const answer of await ask({ model: "assistant", messages, tools: [map] })) {
        assert.equal(answer.reason, "tool_calls");
        const [{ id, function: called }, ...others] = answer.tool_calls;
        assert.deepEqual(others, []);
        assert.equal(called.name, "map");
        assert.deepEqual(JSON.parse(called.arguments), { city: "Rome" });
        const { role, content, tool_calls } = answer;
        const next = await client.chat.completions.create({
          model: "assistant",
          tools: [map],
          messages: [
            ...messages,
            { role, content, tool_calls },
            { role: "tool", tool_call_id: id, content: "a map of Rome" },
          ],
        });
        assert.equal(next.choices[0].message.content, "It is a map of Rome.");
      }
    }
  });

  test("calls what the choice demands", async () => {
    for (const tool_choice of ["required", { type: "function", function: { name: "map" } }]) {
      const only = { model: "bare", messages: say("hello"), tools: [map], tool_choice };
      for (const answer of await ask(only)) {
        assert.equal(answer.reason, "tool_calls");
        assert.deepEqual(answer.tool_calls.map(({ function: { name } }) => name), ["map"]);
      }
    }
  });

  test("runs the client's functions in its loop", async () => {
    const run = client.chat.completions.runTools({
      model: "assistant",
      messages: say("MAP"),
      tools: [{ ...map, function: { ...map.function, parse: JSON.parse, function: ({ city }) => `the map of ${city}` } }],
    });
    assert.equal(await run.finalContent(), "It is the map of Rome.");
  });

  test("answers with an object of a schema", async () => {
    const schema = {
      type: "object",
      required: ["city", "people"],
      properties: { city: { type: "string" }, people: { type: "integer" } },
    };
    const formats = [
      { type: "json_object" },
      { type: "json_schema", json_schema: { name: "place", schema, strict: true } },
    ];
    for (const response_format of formats) {
      for (const answer of await ask({ model: "assistant", messages: say("OBJECT"), response_format })) {
        assert.deepEqual(JSON.parse(answer.content), { city: "Rome", people: 3 });
      }
    }
  });

  test("remembers a conversation only where one is named", async () => {
    const options = { headers: { "X-Conversation-Id": freshId() } };
    const create = (messages, options) =>
      client.chat.completions.create({ model: "assistant", messages }, options);
    await create(say("one"), options);
    const whole = [...say("one"), { role: "assistant", content: "yes" }, ...say("MESSAGES")];
    const remembered = await create(whole, options);
    assert.equal(remembered.choices[0].message.content, "user assistant user");
    const alone = await create(say("MESSAGES"), {});
    assert.equal(alone.choices[0].message.content, "user");
  });

  test("says what waits for a person", async () => {
    const body = { model: "cashier", messages: say("REFUND") };
    const whole = await client.chat.completions.create(body);
    assert.equal(whole.choices[0].message.content, "Waiting: Refund 500");
    assert.equal(whole.choices[0].finish_reason, "stop");
    const [ask] = whole.greenroom.asks;
    assert.equal(ask.kind, "approval");
    await fetch(`${process.env.GREENROOM_URL}/inbox/${ask.askId}/answer`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ data: { approved: true } }),
    });
    const place = `/agents/cashier/generations/${whole.greenroom.generationId}`;
    const ended = await eventually("the refund", () => data(place), (it) => it.status === "completed");
    assert.match(ended.output, /^It is/);
    const chunks = [];
    for await (const chunk of await client.chat.completions.create({ ...body, stream: true })) {
      chunks.push(chunk);
    }
    assert.equal(chunks.at(-1).greenroom.status, "suspended");
  });

  test("begins one generation for a key, and is not asked again", async () => {
    const headers = { "Idempotency-Key": freshId() };
    const body = { model: "assistant", messages: say("once") };
    const first = await client.chat.completions.create(body, { headers });
    assert.equal(first.choices[0].message.content, "You said: once");
    const count = async () => (await data("/agents/assistant/history")).pagination.total;
    const before = await count();
    const refused = { status: 409, code: "generation_exists" };
    await assert.rejects(client.chat.completions.create(body, { headers }), refused);
    await assert.rejects(client.chat.completions.create({ ...body, stream: true }, { headers }), refused);
    assert.equal(await count(), before);
  });

  test("is cancelled when its client leaves a stream", async () => {
    const stream = await client.chat.completions.create({
      model: "assistant",
      messages: say("word ".repeat(2000)),
      stream: true,
    });
    for await (const chunk of stream) {
      assert.equal(chunk.object, "chat.completion.chunk");
      break;
    }
  });
});

describe("a workflow", () => {
  test("takes the last message and answers with its result", async () => {
    const rows = [
      ['{ "n": 4, "text": "x" }', { text: "x", twice: 8 }],
      ["just text", { text: "just text", twice: 0 }],
    ];
    for (const [content, expected] of rows) {
      for (const answer of await ask({ model: "workflow/double", messages: say(content) })) {
        assert.deepEqual(JSON.parse(answer.content), expected);
        assert.equal(answer.reason, "stop");
      }
    }
  });

  test("says what waits, and is resumed in the inbox", async () => {
    const completion = await client.chat.completions.create({
      model: "workflow/approval",
      messages: say("5 euros"),
    });
    assert.equal(completion.choices[0].message.content, "Waiting: Pay 5 euros?");
    const { executionId, asks } = completion.greenroom;
    const ask = await data(`/inbox/${asks[0].askId}`);
    assert.equal(ask.of.executionId, executionId);
  });

  test("that fails is not repeated by the client", async () => {
    const count = async () => (await data("/workflows/broken/executions")).executions.length;
    const before = await count();
    const create = (stream) =>
      client.chat.completions.create({ model: "workflow/broken", messages: say("x"), stream });
    await assert.rejects(create(false), (error) => {
      assert.deepEqual([error.status, error.code], [422, "execution_failed"]);
      assert.match(error.message, /step fail failed/);
      assert.ok(error.headers.get("x-execution-id"));
      return true;
    });
    assert.equal(await count(), before + 1);
    await assert.rejects(async () => {
      for await (const chunk of await create(true)) assert.ok(chunk);
    }, { code: "execution_failed", message: /step fail failed/ });
  });
});

describe("refusals", () => {
  const rows = [
    ["an unknown model", { model: "assistent" }, 404, "model_not_found", "model"],
    ["an agent that is not offered", { model: "hidden" }, 404, "model_not_found", "model"],
    ["several answers", { n: 2 }, 400, "unsupported_parameter", "n"],
    ["a wrong role", { messages: [{ role: "boss", content: "a" }] }, 400, "body_invalid", "messages[0].role"],
    ["too many tools", { tools: [map, map, map] }, 400, "body_invalid", "tools"],
    ["a tool of the agent's name", {
      tools: [{ type: "function", function: { name: "add_three" } }],
    }, 400, "body_invalid", "tools[0]"],
    ["a choice of another tool", {
      tools: [map], tool_choice: { type: "function", function: { name: "mop" } },
    }, 400, "body_invalid", "tool_choice.function.name"],
    ["a wrong type", { temperature: "warm" }, 400, "body_invalid", "temperature"],
  ];
  for (const [name, body, status, code, param] of rows) {
    test(`${name} is refused in OpenAI's shape`, async () => {
      const messages = say("hello");
      const refused = client.chat.completions.create({ model: "assistant", messages, ...body });
      await assert.rejects(refused, { status, code, param, type: "invalid_request_error" });
    });
  }

  test("failures of models have the code of the server", async () => {
    const failing = new OpenAI({ baseURL: client.baseURL, apiKey: "none", maxRetries: 0 });
    const body = { model: "failing", messages: say("hello") };
    const failed = failing.chat.completions.create(body);
    await assert.rejects(failed, { code: "provider_error", type: "server_error" });
    await assert.rejects(async () => {
      const stream = await failing.chat.completions.create({ ...body, stream: true });
      for await (const chunk of stream) assert.ok(chunk);
    }, { code: "provider_error" });
  });

  test("everything that is refused has that shape", async () => {
    const base = `${process.env.GREENROOM_URL}/v1`;
    const rows = [
      ["/chat/completions", { method: "POST", body: "{" }, 400, "json_invalid"],
      ["/chat/completions", { method: "POST", body: "x".repeat(2 << 20) }, 413, "body_too_large"],
      ["/chat/completions", { method: "GET" }, 405, "method_not_allowed"],
      ["/chat/completions", { method: "POST", body: "{}", headers: { origin: "http://evil.example" } }, 403, "origin_not_allowed"],
      ["/embeddings", { method: "POST", body: "{}" }, 404, "not_found"],
      ["/chat/completions", {
        method: "POST", body: JSON.stringify({ model: "m".repeat(100_000), messages: say("x") }),
      }, 404, "model_not_found"],
      ["/models/none", { headers: { accept: "application/problem+json" } }, 404, "model_not_found"],
    ];
    for (const [path, options, status, code] of rows) {
      const headers = { "content-type": "application/json", ...options.headers };
      const response = await fetch(base + path, { ...options, headers });
      const { error } = await response.json();
      assert.deepEqual([response.status, error.code], [status, code], path);
      assert.ok(error.message.length < 500, error.message);
    }
  });
});
