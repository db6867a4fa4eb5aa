// The hook useChat on a page.

import assert from "node:assert/strict";
import { before, describe, test } from "node:test";

import {
  RELEASES, api, data, eventually, freshId, mount, namedBody, openPage, textOf, toolOf,
} from "./support.mjs";

before(openPage);

for (const { name, ai, hooks } of RELEASES) {
  const open = async (agent, options = {}) => {
    const { useChat } = await hooks();
    const id = freshId();
    const transport = new ai.DefaultChatTransport({ api: api(agent), ...options });
    const page = await mount(() => useChat({ id, transport }));
    const isReady = (count) => (chat) => chat.status === "ready" && chat.messages.length === count;
    const say = async (text, count) => {
      page.now().sendMessage({ text });
      return page.until(`an answer to ${text}`, isReady(count));
    };
    return { ...page, id, say };
  };

  describe(`useChat of ${name}`, () => {
    test("needs nothing but the address", async (t) => {
      const page = await open("assistant");
      t.after(page.unmount);
      const chat = await page.say("good morning", 2);
      assert.match(textOf(chat.messages[1]), /good morning/);
      assert.equal(chat.error, undefined);
      const again = await page.say("and good night", 4);
      assert.match(textOf(again.messages[3]), /and good night/);
    });

    test("takes a body of its own", async (t) => {
      const page = await open("assistant", { prepareSendMessagesRequest: namedBody("ben") });
      t.after(page.unmount);
      await page.say("one", 2);
      await page.say("two", 4);
      const path = `/api/memory/conversations/${page.id}/messages?agentId=assistant&userId=ben`;
      const { messages } = await data(path);
      assert.deepEqual(messages.map(textOf), page.now().messages.map(textOf));
    });

    test("shows tools", async (t) => {
      const page = await open("assistant");
      t.after(page.unmount);
      const chat = await page.say("TOOL please", 2);
      const tool = toolOf(chat.messages[1]);
      assert.deepEqual([tool.state, tool.output], ["output-available", { n: 7 }]);
    });

    test("shows errors and goes on", async (t) => {
      const page = await open("assistant");
      t.after(page.unmount);
      for (const [text, shown] of [["ERROR", /not in the mood/], ["LATE", /lost the thread/]]) {
        page.now().sendMessage({ text });
        const chat = await page.until(`the error of ${text}`, ({ status, error }) =>
          status === "error" && shown.test(error.message));
        assert.equal(chat.status, "error");
      }
      const count = page.now().messages.length;
      const chat = await page.say("good morning", count + 2);
      assert.equal(chat.error, undefined);
    });

    test("stops", async (t) => {
      const page = await open("slow");
      t.after(page.unmount);
      page.now().sendMessage({ text: "x ".repeat(200) });
      const chat = await page.until("the first word", ({ messages }) =>
        messages.length === 2 && textOf(messages[1]) !== "");
      await chat.stop();
      const { messages } = await page.until("the end", ({ status }) => status === "ready");
      assert.ok(textOf(messages[1]).length < 400);
      await eventually("the end", () => data("/agents/slow"), (agent) => agent.status === "idle");
    });
  });
}
