// The chat's stream, read by the SDK's transport: what becomes of it is what a page shows.

import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";

import {
  RELEASES, api, data, eventually, freshId, namedBody, storedIn, textOf, toolOf, user,
} from "./support.mjs";

for (const { name, ai } of RELEASES) {
  const chat = (agent, { id = freshId(), ...options } = {}) => {
    const transport = new ai.DefaultChatTransport({ api: api(agent), ...options });
    const send = (messages, abortSignal) =>
      transport.sendMessages({
        trigger: "submit-message",
        chatId: id,
        messageId: undefined,
        messages,
        abortSignal,
      });
    return { id, transport, send };
  };

  /** Reads a stream to its end; gives every state of the message. */
  const read = async (stream, each = () => {}) => {
    const states = [];
    for await (const message of ai.readUIMessageStream({ stream, terminateOnError: true })) {
      states.push(message);
      each(message);
    }
    return states;
  };

  describe(name, () => {
    test("a text grows word by word and is done at the end", async () => {
      const stream = await chat("assistant").send([user("good morning to all of you")]);
      const states = await read(stream);
      const last = states.at(-1);
      assert.equal(last.role, "assistant");
      assert.ok(last.id, "a message without an id");
      assert.match(textOf(last), /good morning to all of you/);
      const text = last.parts.find((part) => part.type === "text");
      assert.equal(text.state, "done");
      assert.ok(states.length > 2, `only ${states.length} states`);
    });

    test("every chunk is known, finish comes last", async () => {
      const stream = await chat("assistant").send([user("hi")]);
      const types = [];
      for await (const chunk of stream) types.push(chunk.type);
      assert.equal(types[0], "start");
      assert.equal(types.at(-1), "finish");
      assert.ok(types.includes("text-delta"), types.join());
    });

    test("a tool's call and what it gave are one part", async () => {
      const states = await read(await chat("assistant").send([user("TOOL please")]));
      const tool = toolOf(states.at(-1));
      assert.equal(tool.type, "tool-add_three");
      assert.equal(tool.state, "output-available");
      assert.deepEqual([tool.input, tool.output], [{ n: 4 }, { n: 7 }]);
      assert.notEqual(textOf(states.at(-1)), "");
    });

    test("a tool that refuses its input is shown and the run goes on", async () => {
      const states = await read(await chat("assistant").send([user("BAD tool")]));
      const tool = toolOf(states.at(-1));
      assert.equal(tool.state, "output-error");
      assert.equal(typeof tool.errorText, "string");
      assert.notEqual(textOf(states.at(-1)), "");
    });

    test("a failure before the first word is an error with its text", async () => {
      const stream = await chat("assistant").send([user("ERROR")]);
      await assert.rejects(read(stream), /not in the mood/);
    });

    test("a failure on the way is an error behind what was there", async () => {
      const seen = [];
      const stream = await chat("assistant").send([user("LATE")]);
      await assert.rejects(read(stream, (message) => seen.push(message)), /lost the thread/);
      assert.equal(toolOf(seen.at(-1)).state, "output-available");
    });

    test("an abort ends the generation", async () => {
      const controller = new AbortController();
      const aborted = once(controller.signal, "abort");
      const stream = await chat("slow").send([user("x ".repeat(200))], controller.signal);
      const reading = read(stream, (message) => {
        if (textOf(message) !== "") controller.abort();
      }).catch((error) => assert.equal(error.name, "AbortError"));
      await Promise.race([aborted, reading]);
      assert.ok(controller.signal.aborted, "nothing was said");
      await eventually("the end", () => data("/agents/slow"), (agent) => agent.status === "idle");
      const { entries } = await data("/agents/slow/history?limit=1");
      assert.equal(entries[0].status, "cancelled");
    });

    test("a conversation goes on and is loaded again as it was", async () => {
      const { id, send } = chat("assistant");
      const first = user("TOOL one");
      const answer = (await read(await send([first]))).at(-1);
      const second = user("two");
      const last = (await read(await send([first, answer, second]))).at(-1);
      const messages = await storedIn(id, "assistant");
      const roles = messages.map((message) => message.role);
      assert.deepEqual(roles, ["user", "assistant", "user", "assistant"]);
      assert.deepEqual(messages.map(textOf), [first, answer, second, last].map(textOf));
      assert.equal(messages[1].id, answer.id);
      assert.deepEqual(toolOf(messages[1]).output, { n: 7 });
      await ai.validateUIMessages({ messages });
      assert.ok((await ai.convertToModelMessages(messages)).length >= 4);
    });

    test("a body with input and options is the same chat", async () => {
      const prepareSendMessagesRequest = namedBody("ann");
      const { id, send } = chat("assistant", { prepareSendMessagesRequest });
      assert.match(textOf((await read(await send([user("hello there")]))).at(-1)), /hello there/);
      assert.equal((await storedIn(id, "assistant", "ann")).length, 2);
    });

    test("a chat that has lost its reader is resumed as a whole", async () => {
      const { id, transport, send } = chat("steady");
      const question = `TOOL ${"and so on ".repeat(20)}`;
      const controller = new AbortController();
      const first = [];
      const reading = read(await send([user(question)], controller.signal), (message) => {
        first.push(message);
        if (textOf(message) !== "") controller.abort();
      });
      await reading.catch((error) => assert.equal(error.name, "AbortError"));
      assert.ok(textOf(first.at(-1)).length < question.length, "the abort came too late");

      const resumed = await transport.reconnectToStream({ chatId: id });
      assert.notEqual(resumed, null);
      const states = await read(resumed);
      const last = states.at(-1);
      assert.deepEqual(new Set([...first, ...states].map((message) => message.id)).size, 1);
      assert.equal(textOf(last), question);
      assert.deepEqual(toolOf(last).output, { n: 7 });
      const { entries } = await data("/agents/steady/history?limit=1");
      assert.equal(entries[0].status, "completed");
      const stored = await storedIn(id, "steady");
      assert.deepEqual(stored.map(textOf), [question, question]);
      assert.equal(stored[1].id, last.id);
      assert.equal(await transport.reconnectToStream({ chatId: id }), null);
    });

    test("each reader of a chat gets all of it", async () => {
      const { id, transport, send } = chat("steady");
      const mine = await send([user("one two three four five six seven eight nine ten")]);
      const theirs = await transport.reconnectToStream({ chatId: id });
      const [own, other] = await Promise.all([read(mine), read(theirs)]);
      assert.deepEqual(own.at(-1), other.at(-1));
    });

    for (const [body, options, userId] of [
      ["the whole chat", {}, undefined],
      ["the newest message", { prepareSendMessagesRequest: namedBody("eve") }, "eve"],
    ]) {
      test(`the model sees each message once when the body has ${body}`, async () => {
        const { send } = chat("assistant", options);
        const messages = [user("one")];
        messages.push((await read(await send(messages))).at(-1), user("MESSAGES"));
        const seen = textOf((await read(await send(messages))).at(-1));
        assert.equal(seen, "user assistant user");
      });

      test(`an answer asked for again replaces the old one when the body has ${body}`, async () => {
        const { id, send } = chat("assistant", options);
        const messages = [user("one")];
        messages.push((await read(await send(messages))).at(-1), user("MESSAGES"));
        const stale = (await read(await send(messages))).at(-1);
        const fresh = (await read(await send(messages))).at(-1);
        assert.notEqual(fresh.id, stale.id);
        assert.equal(textOf(fresh), "user assistant user");
        const stored = await storedIn(id, "assistant", userId);
        assert.deepEqual(stored.map(({ id }) => id), [...messages, fresh].map(({ id }) => id));
      });
    }

    test("where nothing runs there is nothing to resume", async () => {
      const { id, transport } = chat("assistant");
      assert.equal(await transport.reconnectToStream({ chatId: id }), null);
    });
  });
}
