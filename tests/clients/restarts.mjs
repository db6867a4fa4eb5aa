// Pages while the servers behind a load balancer are restarted in turn: chats with the hook useChat,
// and executions followed with EventSource. Prints `restart` when all of it is under way, and reads one
// line when the server is killed or stops, and another one when it is back: once for each server.
// tests/it/restarts.rs runs it.

import assert from "node:assert/strict";
import { createInterface } from "node:readline";

import { provide } from "./provider.mjs";
import {
  BASE, RELEASES, api, data, eventually, freshId, mount, openPage, storedIn, textOf, user,
} from "./support.mjs";

/** Servers that are killed lose the chats that they work on; those that are stopped lose nothing. */
const KILLED = process.env.GREENROOM_RESTARTS === "killed";
/** Some kernels let only root stop without breaking a connection that is not accepted yet. */
const BREAKS = KILLED || process.getuid() !== 0;
const SERVERS = 3;
const CHATS = 3;
const EXECUTIONS = 6;
const AGENT = "steady";

/** A text in which no word is like another one. */
const question = (id) => Array.from({ length: 100 }, (_, n) => `${id.slice(-4)}-${n}`).join(" ");

const open = async ({ ai, hooks }, { id = freshId(), ...chat } = {}) => {
  const { useChat } = await hooks();
  const transport = new ai.DefaultChatTransport({ api: api(AGENT) });
  const page = await mount(() => useChat({ id, transport, ...chat }));
  const shown = () => page.now().messages.slice(1).map(textOf).join("");
  return { ...page, id, shown };
};

const isAtRest = ({ status }) => status === "ready" || status === "error";
const isTold = ({ messages }) => messages.length === 2 && textOf(messages[1]) !== "";

/** A page whose chat has begun, and another one that has joined it. */
async function chatting(release) {
  const first = await open(release);
  const text = question(first.id);
  first.now().sendMessage({ text });
  await first.until("the first word", isTold);
  const chat = { release, first, text, joined: [] };
  await join(chat);
  return chat;
}

/** Opens another page of a chat, with the question that it has from the first one. */
async function join({ release, first, joined }) {
  const messages = first.now().messages.slice(0, 1);
  const page = await open(release, { id: first.id, messages, resume: true });
  await page.until("the first word on another page", isTold);
  joined.push(page);
}

/** Checks that the server has stored the question and the answer, once. */
async function isStored({ id }, text) {
  assert.deepEqual((await storedIn(id, AGENT)).map(textOf), [text, text]);
}

/** Ends of a chat: true if it was lost. */
async function ended({ first, joined, text }) {
  const { status, error } = await first.until("the end of a chat", isAtRest);
  assert.ok(text.startsWith(first.shown()), `a word was lost or came twice: ${first.shown()}`);
  if (status === "ready") {
    assert.equal(first.shown(), text, "the end of the answer is missing, without an error");
    await isStored(first, text);
  } else {
    assert.ok(KILLED, `a chat was lost: ${error}`);
    await wasInterrupted(first, text);
  }
  for (const page of joined) await followed(page, text, status);
  for (const page of [first, ...joined]) page.unmount();
  return status === "error";
}

/** The truth about a chat whose server was killed: nothing is stored, and it can be asked again. */
async function wasInterrupted(page, text) {
  const ask = () => data(`/agents/${AGENT}/history?limit=100`);
  const find = ({ entries }) => entries.find((entry) => entry.conversationId === page.id);
  const isOver = (history) => find(history)?.status !== "working";
  const entry = find(await eventually("the end in the history", ask, isOver));
  assert.equal(entry.status, "error", JSON.stringify(entry));
  assert.match(entry.error, /interrupted/);
  assert.deepEqual(await storedIn(page.id, AGENT).catch(() => []), []);
  page.now().regenerate();
  await page.until("the second answer", ({ status }) => status === "ready" && page.shown() === text);
  await isStored(page, text);
}

/** A page that joined: a stream that broke is an error, never a shorter answer. */
async function followed(page, text, status) {
  const now = await page.until("the end on another page", isAtRest);
  assert.ok(text.startsWith(page.shown()), `a word was lost or came twice: ${page.shown()}`);
  if (now.status === "ready") {
    assert.equal(page.shown(), text, "another page shows a part as if it were all");
    return;
  }
  assert.ok(KILLED, `another page was lost: ${now.error}`);
  if (status === "error") return;
  // its own server was killed and that of the chat was not: what it shows was stored meanwhile
  const messages = await storedIn(page.id, AGENT);
  assert.deepEqual(messages.map(textOf), [text, text]);
}

/** Starts an execution; repeated with its key until there is an answer. */
async function execute(id) {
  const input = { n: Array.from({ length: 20 }, (_, n) => n) };
  const body = JSON.stringify({ input, options: { executionId: id } });
  const headers = { "content-type": "application/json", "idempotency-key": id };
  // the server that was asked is gone, or stops
  const refusals = BREAKS ? [502, 503] : [503];
  const ask = async () => {
    const response = await fetch(`${BASE}/workflows/ticking/execute`, { method: "POST", headers, body });
    const text = await response.text();
    assert.ok(response.ok || refusals.includes(response.status), `${response.status} ${text}`);
    return response.ok && JSON.parse(text).data;
  };
  const first = await ask();
  const outcome = first || (await eventually(`the outcome of ${id}`, ask, (outcome) => outcome));
  assert.equal(outcome.status, "completed");
}

/** Follows an execution as a browser does, until the server says that there is no more. */
async function follow(id) {
  const path = `/workflows/ticking/executions/${id}`;
  await eventually(`the start of ${id}`, () => fetch(`${BASE}${path}/state`), ({ ok }) => ok);
  const source = new EventSource(`${BASE}${path}/stream`);
  const seen = [];
  let reconnects = -1;
  source.addEventListener("open", () => (reconnects += 1));
  source.addEventListener("message", ({ lastEventId, data }) =>
    seen.push({ id: Number(lastEventId), type: JSON.parse(data).type }));
  const first = new Promise((resolve) => source.addEventListener("message", resolve, { once: true }));
  const closed = new Promise((resolve) =>
    source.addEventListener("error", () => source.readyState === EventSource.CLOSED && resolve()));
  const whole = async () => {
    await closed;
    assert.equal(seen.at(-1).type, "workflow-result", `${id} ended early: ${JSON.stringify(seen.at(-1))}`);
    assert.deepEqual(seen.map(({ id }) => id), seen.map((_, n) => n + 1), `gaps or repeats in ${id}`);
    assert.ok(seen.length > 50, `${id} has ${seen.length} events`);
    return reconnects;
  };
  return { first, whole };
}

/** Asks for short answers until `isOver`; gives how many there were. */
async function ask({ ai }, isOver) {
  const transport = new ai.DefaultChatTransport({ api: api(AGENT) });
  let answers = 0;
  while (!isOver()) {
    const options = { trigger: "submit-message", chatId: freshId(), messages: [user("one two")] };
    try {
      const stream = await transport.sendMessages(options);
      let last;
      const read = { stream, terminateOnError: true };
      for await (const message of ai.readUIMessageStream(read)) last = message;
      assert.equal(textOf(last), "one two");
      answers += 1;
    } catch (error) {
      if (!BREAKS || error instanceof assert.AssertionError) throw error;
    }
  }
  return answers;
}

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function restart(chats) {
  let isOver = false;
  const asking = RELEASES.map((release) => ask(release, () => isOver));
  console.log("restart");
  await lines.next();
  // the chats are in the middle of their answers, and pages are loaded again
  if (!KILLED) await Promise.all(chats.map(join));
  provider.release();
  await lines.next();
  isOver = true;
  const answers = await Promise.all(asking);
  assert.ok(answers.every((count) => count > 0), `answers meanwhile: ${answers}`);
}

openPage();
const provider = await provide(Number(process.env.GREENROOM_PROVIDER_PORT));
let lost = 0;
let chats = 0;
let reconnects = 0;
for (let server = 0; server < SERVERS; server += 1) {
  provider.hold();
  const pages = RELEASES.flatMap((release) => Array.from({ length: CHATS }, () => chatting(release)));
  const ids = Array.from({ length: EXECUTIONS }, freshId);
  const executed = ids.map(execute);
  const streams = await Promise.all(ids.map(follow));
  await Promise.all(streams.map(({ first }) => first));
  const opened = await Promise.all(pages);
  await restart(opened);
  const ends = await Promise.all(opened.map(ended));
  lost += ends.filter(Boolean).length;
  chats += ends.length;
  await Promise.all(executed);
  for (const count of await Promise.all(streams.map(({ whole }) => whole()))) reconnects += count;
}
console.error(`${lost} of ${chats} chats were lost and asked again; ${reconnects} streams reconnected`);
assert.equal(lost > 0, KILLED);
assert.ok(reconnects > 0 || !KILLED, "no stream had to reconnect");
assert.ok(lost < chats);
process.exit(0);
