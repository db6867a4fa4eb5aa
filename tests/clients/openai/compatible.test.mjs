// The AI SDK's provider for servers that are compatible with OpenAI.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from "ai7";

const provider = createOpenAICompatible({
  name: "greenroom",
  baseURL: `${process.env.GREENROOM_URL}/v1`,
  includeUsage: true,
  supportsStructuredOutputs: true,
});
const model = provider("assistant");

const map = tool({
  description: "Shows a city",
  inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } } }),
  execute: async ({ city }) => `the map of ${city}`,
});

describe("@ai-sdk/openai-compatible", () => {
  test("generates and streams texts", async () => {
    const { text, usage } = await generateText({ model, prompt: "hello" });
    assert.equal(text, "You said: hello");
    assert.ok(usage.totalTokens > 0);
    const stream = streamText({ model, prompt: "hello" });
    assert.equal(await stream.text, "You said: hello");
    assert.ok((await stream.usage).totalTokens > 0);
  });

  test("makes the calls of its own tools", async () => {
    const options = { model, prompt: "MAP", tools: { map }, stopWhen: stepCountIs(3) };
    assert.equal((await generateText(options)).text, "It is the map of Rome.");
    assert.equal(await streamText(options).text, "It is the map of Rome.");
  });

  test("generates objects", async () => {
    const schema = jsonSchema({
      type: "object",
      required: ["city", "people"],
      properties: { city: { type: "string" }, people: { type: "integer" } },
    });
    const options = { model, prompt: "OBJECT", output: Output.object({ schema }) };
    assert.deepEqual((await generateText(options)).output, { city: "Rome", people: 3 });
    assert.deepEqual(await streamText(options).output, { city: "Rome", people: 3 });
  });

  test("uses workflows as models", async () => {
    const { text } = await generateText({ model: provider("workflow/double"), prompt: '{"n":2}' });
    assert.equal(JSON.parse(text).twice, 4);
  });
});
