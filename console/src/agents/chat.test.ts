import assert from "node:assert/strict";
import { test } from "node:test";
import { Chat } from "./chat.ts";

test("a conversation that is left while it is read is not followed", async () => {
  for (const isLeft of [false, true]) {
    const asked: string[] = [];
    let answer = (): void => undefined;
    const isAnswered = new Promise<void>((resolve) => (answer = resolve));
    globalThis.fetch = async (url) => {
      asked.push(String(url));
      if (String(url).endsWith("/stream")) return new Response(null, { status: 204 });
      await isAnswered;
      return Response.json({ success: true, data: { messages: [], entries: [] } });
    };
    const chat = new Chat("clerk", "c1", true, {});
    const opened = chat.open();
    if (isLeft) chat.close();
    answer();
    await opened;
    assert.equal(asked.some((url) => url.endsWith("/stream")), !isLeft, asked.join(" "));
  }
});

test("a question that is asked while the conversation is read is not ended by it", async () => {
  let read = (): void => undefined;
  const isRead = new Promise<void>((resolve) => (read = resolve));
  let answer = (): void => undefined;
  const isAnswered = new Promise<void>((resolve) => (answer = resolve));
  globalThis.fetch = async (url, options) => {
    if (String(url).endsWith("/stream")) return new Response(null, { status: 204 });
    if (String(url).endsWith("/chat")) {
      await isAnswered;
      if (options?.signal?.aborted) throw options.signal.reason;
      return new Response('data: {"type":"start","messageId":"m1"}\n\ndata: [DONE]\n\n');
    }
    await isRead;
    return Response.json({ success: true, data: { messages: [], entries: [] } });
  };
  const chat = new Chat("clerk", "c1", true, {});
  const opened = chat.open();
  const asked = chat.ask("Hello");
  read();
  await opened;
  answer();
  await asked;
  assert.deepEqual(chat.messages.value.map(({ role }) => role), ["user", "assistant"]);
});

test("a question that is asked while an answer is looked for is the only one that is followed", async () => {
  let attached = (): void => undefined;
  const isAttaching = new Promise<void>((resolve) => (attached = resolve));
  let isAborted = false;
  globalThis.fetch = async (url, options) => {
    if (String(url).endsWith("/stream")) {
      attached();
      return new Promise((_, reject) => options?.signal?.addEventListener("abort", () => {
        isAborted = true;
        reject(options.signal?.reason);
      }));
    }
    if (String(url).endsWith("/chat")) return new Response('data: {"type":"start","messageId":"m1"}\n\ndata: [DONE]\n\n');
    return Response.json({ success: true, data: { messages: [], entries: [] } });
  };
  const chat = new Chat("clerk", "c1", true, {});
  const opened = chat.open();
  await isAttaching;
  await chat.ask("Hello");
  await opened;
  assert.ok(isAborted);
  assert.equal(chat.error.value, null);
  assert.deepEqual(chat.messages.value.map(({ role }) => role), ["user", "assistant"]);
});
