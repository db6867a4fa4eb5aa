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
