// Calls that wait for the user of a chat, on pages with useChat.

import assert from "node:assert/strict";
import { before, describe, test } from "node:test";

import {
  BASE, RELEASES, api, data, eventually, freshId, mount, openPage, storedIn, textOf,
} from "./support.mjs";

before(openPage);

const toolsOf = (message) => message.parts.filter((part) => part.type.startsWith("tool-"));
const statesOf = (message) => toolsOf(message).map((part) => part.state);
const dataOf = (message, type) => message.parts.filter((part) => part.type === type);

/** Opens a page with a chat that sends its answers by itself. */
const opener = ({ ai, hooks }, agent, isComplete) => async (chat = {}) => {
  const { useChat } = await hooks();
  const { id = freshId(), ...options } = chat;
  const transport = new ai.DefaultChatTransport({ api: api(agent) });
  const sendAutomaticallyWhen = ai[isComplete];
  const page = await mount(() => useChat({ id, transport, sendAutomaticallyWhen, ...options }));
  const until = (what, holds) =>
    page.until(what, (chat) => chat.status === "error" || (chat.status === "ready" && holds(chat)))
      .then((chat) => {
        assert.equal(chat.error, undefined);
        return chat;
      });
  const say = async (text) => {
    page.now().sendMessage({ text });
    return until(`an answer to ${text}`, ({ messages }) => messages.length === 2);
  };
  const done = () =>
    until("the end", ({ messages }) => messages.length === 2 && textOf(messages[1]) !== "");
  const failed = () => page.until("a failure", ({ status }) => status === "error");
  return { ...page, id, say, until, done, failed };
};

for (const release of RELEASES.filter(({ name }) => name !== "ai 5")) {
  const open = opener(release, "cashier", "lastAssistantMessageIsCompleteWithApprovalResponses");
  const respond = (page, tool, approved, reason) =>
    page.now().addToolApprovalResponse({ id: tool.approval.id, approved, reason });

  describe(`approvals with useChat of ${release.name}`, () => {
    for (const [approved, state] of [[true, "output-available"], [false, "output-denied"]]) {
      test(`a call that is ${approved ? "approved" : "refused"}`, async (t) => {
        const page = await open();
        t.after(page.unmount);
        const asked = await page.say("REFUND");
        assert.deepEqual(statesOf(asked.messages[1]), ["approval-requested"]);
        await respond(page, toolsOf(asked.messages[1])[0], approved, "because");
        const { messages } = await page.done();
        const [tool] = toolsOf(messages[1]);
        assert.equal(messages[1].id, asked.messages[1].id);
        assert.deepEqual([tool.state, tool.output], [state, approved ? { refunded: 500 } : undefined]);
        const [, stored] = await storedIn(page.id, "cashier");
        const [kept] = toolsOf(stored);
        assert.equal(kept.state, state);
        assert.equal(kept.approval.approved, approved);
        assert.equal(kept.approval.id, tool.approval.id);
      });
    }

    test("a page that is loaded again", async (t) => {
      const first = await open();
      const asked = await first.say("REFUND");
      first.unmount();
      const { id } = first;
      const messages = await storedIn(id, "cashier");
      assert.deepEqual(await release.ai.validateUIMessages({ messages }), messages);
      const shown = ({ type, toolCallId, state, input, approval }) =>
        ({ type, toolCallId, state, input, approval });
      assert.deepEqual(toolsOf(messages[1]).map(shown), toolsOf(asked.messages[1]).map(shown));
      const page = await open({ id, messages });
      t.after(page.unmount);
      await respond(page, toolsOf(page.now().messages[1])[0], true);
      const { messages: after } = await page.done();
      assert.deepEqual(toolsOf(after[1])[0].output, { refunded: 500 });
    });

    test("two calls in one turn, one of which is refused", async (t) => {
      const page = await open();
      t.after(page.unmount);
      const { messages } = await page.say("TWO REFUNDS");
      const [one, other] = toolsOf(messages[1]);
      await respond(page, one, true);
      await respond(page, other, false, "too much");
      const { messages: after } = await page.done();
      assert.deepEqual(statesOf(after[1]), ["output-available", "output-denied"]);
      const stored = await storedIn(page.id, "cashier");
      assert.deepEqual(statesOf(stored[1]), statesOf(after[1]));
      await release.ai.validateUIMessages({ messages: stored });
    });

    test("a call that somebody else has approved with other arguments", async (t) => {
      const page = await open();
      t.after(page.unmount);
      const { messages } = await page.say("TWO REFUNDS");
      const [one, other] = toolsOf(messages[1]);
      await answer(one.approval.id, { approved: true, input: { amount: 450 } });
      assert.deepEqual(toolsOf(page.now().messages[1])[0].input, { amount: 500 });
      await respond(page, one, true);
      await respond(page, other, false, "too much");
      const { messages: after } = await page.done();
      const [edited, refused] = toolsOf(after[1]);
      assert.deepEqual([edited.input, edited.output], [{ amount: 450 }, { refunded: 450 }]);
      assert.equal(edited.approval.approved, true);
      assert.deepEqual([refused.state, refused.input], ["output-denied", { amount: 600 }]);
      const stored = await storedIn(page.id, "cashier");
      assert.deepEqual(toolsOf(stored[1]).map(({ input }) => input), [{ amount: 450 }, { amount: 600 }]);
    });

    test("a call that somebody else has approved", async (t) => {
      const page = await open();
      t.after(page.unmount);
      const { messages } = await page.say("REFUND");
      const [tool] = toolsOf(messages[1]);
      await answer(tool.approval.id, { approved: true });
      await eventually("the end", () => storedIn(page.id, "cashier"), (stored) =>
        statesOf(stored[1])[0] === "output-available");
      respond(page, tool, true);
      const { error } = await page.failed();
      assert.match(error.message, /Nothing waits/);
    });

    test("a new message in place of an answer", async (t) => {
      const page = await open();
      t.after(page.unmount);
      await page.say("REFUND");
      page.now().sendMessage({ text: "MESSAGES" });
      const { messages } = await page.until("an answer", ({ messages }) => messages.length === 4);
      assert.equal(textOf(messages[3]), "user assistant tool user");
      const stored = await storedIn(page.id, "cashier");
      assert.deepEqual(statesOf(stored[1]), ["output-denied"]);
    });
  });
}

for (const release of RELEASES) {
  for (const agent of release.name === "ai 5" ? ["teller"] : ["cashier", "teller"]) {
    const open = opener(release, agent, "lastAssistantMessageIsCompleteWithToolCalls");

    test(`${release.name} answers a question of ${agent}`, async (t) => {
      const page = await open();
      t.after(page.unmount);
      const { messages } = await page.say("WHICH");
      const [tool] = toolsOf(messages[1]);
      const [ask] = dataOf(messages[1], "data-ask");
      assert.deepEqual([tool.state, ask.data.question], ["input-available", "Which one?"]);
      assert.deepEqual(dataOf((await storedIn(page.id, agent))[1], "data-ask"), [ask]);
      const output = "the left one";
      page.now().addToolResult({ tool: "ask_user", toolCallId: tool.toolCallId, output });
      const { messages: after } = await page.done();
      assert.equal(toolsOf(after[1])[0].output, output);
    });
  }

  const open = opener(release, "teller", "lastAssistantMessageIsCompleteWithToolCalls");

  for (const approved of [true, false]) {
    test(`${release.name} ${approved ? "approves" : "refuses"} with data`, async (t) => {
      const page = await open();
      t.after(page.unmount);
      const { messages } = await page.say("REFUND");
      const [tool] = toolsOf(messages[1]);
      const [request] = dataOf(messages[1], "data-approval");
      assert.equal(tool.state, "input-available");
      assert.equal(request.data.toolCallId, tool.toolCallId);
      assert.deepEqual([request.data.reason, request.data.input], ["Refund 500", { amount: 500 }]);
      const output = { approved, ...(!approved && { reason: "too much" }) };
      page.now().addToolResult({ tool: "refund", toolCallId: tool.toolCallId, output });
      const { messages: after } = await page.done();
      const [ended] = toolsOf(after[1]);
      if (approved) assert.deepEqual(ended.output, { refunded: 500 });
      else assert.match(ended.errorText, /refused.*too much/);
      const [stored] = toolsOf((await storedIn(page.id, "teller"))[1]);
      assert.deepEqual([stored.state, stored.approval], [ended.state, undefined]);
    });
  }

  test(`${release.name} shows the arguments that its user has edited`, async (t) => {
    const page = await open();
    t.after(page.unmount);
    const { messages } = await page.say("REFUND");
    const [tool] = toolsOf(messages[1]);
    const output = { approved: true, input: { amount: 450 } };
    page.now().addToolResult({ tool: "refund", toolCallId: tool.toolCallId, output });
    const { messages: after } = await page.done();
    const [edited] = toolsOf(after[1]);
    assert.equal(edited.toolCallId, tool.toolCallId);
    assert.deepEqual([edited.input, edited.output], [{ amount: 450 }, { refunded: 450 }]);
  });
}

async function answer(askId, body) {
  const response = await fetch(`${BASE}/inbox/${askId}/answer`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ data: body }),
  });
  assert.equal(response.status, 200, await response.text());
  return data(`/inbox/${askId}`);
}
