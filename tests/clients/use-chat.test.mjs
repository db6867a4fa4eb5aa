// The hook useChat on a page.

import assert from "node:assert/strict";
import { before, describe, test } from "node:test";

import {
  RELEASES, api, data, eventually, freshId, mount, namedBody, openPage, storedIn, textOf, toolOf,
} from "./support.mjs";

before(openPage);

for (const { name, ai, hooks } of RELEASES) {
  const open = async (agent, options = {}, { id = freshId(), ...chat } = {}) => {
    const { useChat } = await hooks();
    const transport = new ai.DefaultChatTransport({ api: api(agent), ...options });
    const page = await mount(() => useChat({ id, transport, ...chat }));
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
      const messages = await storedIn(page.id, "assistant", "ben");
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
      const { entries } = await data("/agents/slow/history?limit=1");
      assert.equal(entries[0].status, "cancelled");
    });

    for (const [body, options, userId] of [
      ["the whole chat", {}, undefined],
      ["the newest message", { prepareSendMessagesRequest: namedBody("dan") }, "dan"],
    ]) {
      test(`regenerates with a body of ${body}`, async (t) => {
        const page = await open("assistant", options);
        t.after(page.unmount);
        await page.say("one", 2);
        const { messages: before } = await page.say("MESSAGES", 4);
        page.now().regenerate();
        const stale = before[3].id;
        const { messages } = await page.until("another answer", ({ status, messages }) =>
          status === "ready" && messages.length === 4 && messages[3].id !== stale);
        assert.equal(textOf(messages[3]), "user assistant user");
        const stored = await storedIn(page.id, "assistant", userId);
        assert.deepEqual(stored.map(({ id }) => id), messages.map(({ id }) => id));
      });
    }

    test("goes on with what the server has kept", async (t) => {
      const earlier = await open("assistant");
      await earlier.say("TOOL please", 2);
      earlier.unmount();
      const { id } = earlier;
      const page = await open("assistant", {}, { id, messages: await storedIn(id, "assistant") });
      t.after(page.unmount);
      assert.deepEqual(toolOf(page.now().messages[1]).output, { n: 7 });
      const { messages } = await page.say("MESSAGES", 4);
      assert.equal(textOf(messages[3]), "user assistant tool assistant user");
      const stored = await storedIn(id, "assistant");
      assert.deepEqual(stored.map(({ id }) => id), messages.map(({ id }) => id));
    });

    test("resumes on another page what still runs", async (t) => {
      const first = await open("steady");
      t.after(first.unmount);
      const question = "and so on ".repeat(20);
      first.now().sendMessage({ text: question });
      const { messages } = await first.until("the first word", ({ messages }) =>
        messages.length === 2 && textOf(messages[1]) !== "");
      const loaded = { id: first.id, messages: messages.slice(0, 1), resume: true };
      const second = await open("steady", {}, loaded);
      t.after(second.unmount);
      const isWhole = ({ status, messages }) =>
        status === "ready" && messages.length === 2 && textOf(messages[1]) === question;
      const pages = [await first.until("the end", isWhole), await second.until("the end", isWhole)];
      const [one, other] = pages.map(({ messages }) => messages[1]);
      assert.deepEqual(one, other);
    });
  });
}
