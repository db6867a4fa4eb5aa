// Calls of tools that wait for the user of a chat, on the documented page in a real browser. The page
// is served from an origin of its own, which the server has in `[cors]`.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { BASE, data, eventually, freshId, storedIn } from "../support.mjs";
import { launch } from "./browser.mjs";
import { serve } from "./site.mjs";

const MAJORS = [6, 7];
const AGENT = "cashier";
const SHOP = "shop.example";

let browser;
let site;

before(async () => {
  browser = await launch();
  site = await serve(MAJORS);
});

after(async () => {
  await browser?.close();
  site?.close();
});

const address = (host, major, id) =>
  `http://${host}:${site.address().port}/${major}?${new URLSearchParams({ server: BASE, agent: AGENT, id })}`;

/** Opens a chat. Ends the test with an error if the page has one. */
async function open(t, major) {
  const id = freshId();
  const page = await browser.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => {
    // the browser reports the 404 of a new chat
    const isReport = message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && !isReport) errors.push(message.text());
  });
  t.after(async () => {
    await page.close();
    assert.deepEqual(errors, []);
  });
  page.setDefaultTimeout(20_000);
  await page.goto(address(SHOP, major, id));
  const messages = page.getByRole("article");
  const calls = page.getByRole("region", { name: "refund" });
  /** The tools of the stored answer. */
  const stored = async () => {
    const { parts } = (await storedIn(id, AGENT))[1];
    return parts.filter(({ type }) => type === "tool-refund");
  };
  return {
    id,
    messages,
    calls,
    reload: () => page.reload(),
    say: async (text) => {
      await page.getByLabel("Message").fill(text);
      await page.getByRole("button", { name: "Send" }).click();
    },
    decide: async (call, button, reason) => {
      if (reason) await call.getByLabel("Reason").fill(reason);
      await call.getByRole("button", { name: button }).click();
    },
    /** Waits for a text, and returns the ids of the messages on the page. */
    shows: async (within, text) => {
      await within.getByText(text, { exact: true }).waitFor().catch(async (error) => {
        throw new Error(`${error.message}\nThe page says: ${await page.innerText("body")}`);
      });
      return messages.evaluateAll((all) => all.map(({ id }) => id));
    },
    stored,
    /** The same once they have ended: they are stored with the answer, shortly after the page shows it. */
    ended: () =>
      eventually("the calls have ended", stored, (tools) =>
        tools.length > 0 && tools.every(({ state }) => state.startsWith("output-")),
      ),
  };
}

for (const major of MAJORS) {
  describe(`useChat of ai ${major} in a browser`, () => {
    test("approves a call, and the text follows in the same message", async (t) => {
      const { messages, calls, say, decide, shows, ended } = await open(t, major);
      await say("REFUND");
      const asked = await shows(calls, '{"amount":500}');
      await decide(calls, "Approve");
      await shows(calls, '{"refunded":500}');
      const done = await shows(messages.nth(1), '{"refunded":500};');
      assert.equal(done.length, 2);
      assert.deepEqual(done, asked);
      const [tool] = await ended();
      assert.deepEqual([tool.state, tool.output], ["output-available", { refunded: 500 }]);
    });

    test("refuses a call, and tells the model why", async (t) => {
      const { messages, calls, say, decide, shows, ended } = await open(t, major);
      await say("REFUND");
      await decide(calls, "Refuse", "too much");
      await shows(calls, "Refused: too much");
      await shows(messages.nth(1), "refused by a person: too much;");
      const [tool] = await ended();
      assert.deepEqual([tool.state, tool.approval.reason], ["output-denied", "too much"]);
    });

    test("approves after a reload, in the message from before", async (t) => {
      const { messages, calls, reload, say, decide, shows, ended } = await open(t, major);
      await say("REFUND");
      const asked = await shows(calls, '{"amount":500}');
      await calls.getByRole("button", { name: "Approve" }).waitFor();
      await reload();
      await decide(calls, "Approve");
      const done = await shows(messages.nth(1), '{"refunded":500};');
      assert.equal(done[1], asked[1]);
      assert.equal(done.length, 2);
      await ended();
      await reload();
      assert.deepEqual(await shows(messages.nth(1), '{"refunded":500};'), done);
      await shows(calls, '{"refunded":500}');
    });

    test("decides two calls of one turn, one of which is refused", async (t) => {
      const { messages, calls, say, decide, shows, ended } = await open(t, major);
      await say("TWO REFUNDS");
      await decide(calls.nth(0), "Approve");
      await decide(calls.nth(1), "Refuse", "once is enough");
      await shows(messages.nth(1), '{"refunded":500};refused by a person: once is enough;');
      await shows(calls.nth(0), '{"refunded":500}');
      await shows(calls.nth(1), "Refused: once is enough");
      const states = (await ended()).map(({ state }) => state);
      assert.deepEqual(states, ["output-available", "output-denied"]);
    });

    test("withdraws what waits by a new message", async (t) => {
      const { messages, calls, reload, say, shows, stored } = await open(t, major);
      await say("REFUND");
      await calls.getByRole("button", { name: "Approve" }).waitFor();
      const [{ approval }] = await stored();
      await say("MESSAGES");
      await shows(messages.nth(3), "user assistant tool user");
      assert.equal(await calls.getByRole("button").count(), 0);
      assert.equal((await data(`/inbox/${approval.id}`)).state, "withdrawn");
      await reload();
      await shows(calls, "Refused: not approved: the user went on");
    });

    test("shows the arguments that somebody else has edited", async (t) => {
      const { id, messages, calls, say, decide, shows } = await open(t, major);
      await say("TWO REFUNDS");
      await calls.nth(1).getByRole("button", { name: "Approve" }).waitFor();
      const [, { metadata, parts }] = await storedIn(id, AGENT);
      const { toolCallId } = parts.find(({ type }) => type === "tool-refund");
      const body = JSON.stringify({ toolCallId, approved: true, input: { amount: 450 } });
      const response = await fetch(
        `${BASE}/agents/${AGENT}/generations/${metadata.generationId}/approve`,
        { method: "POST", headers: { "content-type": "application/json" }, body },
      );
      assert.equal(response.status, 200, await response.text());
      await shows(calls.nth(0), '{"amount":500}');
      await decide(calls.nth(0), "Approve");
      await decide(calls.nth(1), "Approve");
      await shows(calls.nth(0), '{"amount":450}');
      await shows(messages.nth(1), '{"refunded":450};{"refunded":600};');
    });
  });
}

test("a page of an origin that is not listed gets nothing", async (t) => {
  const page = await browser.newPage();
  t.after(() => page.close());
  const failing = page.waitForEvent("pageerror");
  await page.goto(address("elsewhere.example", MAJORS[0], freshId()));
  assert.match((await failing).message, /Failed to fetch/);
});
