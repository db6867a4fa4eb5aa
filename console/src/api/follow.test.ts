import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { token, wanted } from "./auth.ts";
import { follow, links } from "./follow.ts";

const seen = { hidden: false, addEventListener: () => undefined, removeEventListener: () => undefined };
globalThis.document = seen as unknown as Document;

/** Lets everything happen that waits for nothing. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const state = (): string[] => [...links.peek().values()].map(({ kind }) => kind);

/** Answers with these, and notes behind which event each request asks. */
function serve(context: TestContext, answers: (() => Response)[]): string[] {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const asked: string[] = [];
  globalThis.fetch = async (_, init) => {
    init?.signal?.throwIfAborted();
    asked.push(new Headers(init?.headers).get("last-event-id") ?? "");
    return (answers[asked.length - 1] ?? opened)();
  };
  return asked;
}

/** A stream with one event, or with this text, that does not end. */
function opened(text = "id: 7\ndata: {}\n\n"): Response {
  return new Response(new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode(text)) }));
}

function refusing(status: number): () => Response {
  return () => Response.json({ success: false, error: "no" }, { status });
}

test("a stream that says nothing is made again behind its last event", async (context) => {
  const asked = serve(context, []);
  const stop = follow("/stream", { onFrame: () => false });
  for (let n = 0; n < 3; n++) await turn();
  assert.deepEqual([asked, state()], [[""], ["live"]]);
  context.mock.timers.tick(119_999);
  assert.deepEqual(state(), ["live"]);
  context.mock.timers.tick(1);
  assert.deepEqual(state(), ["lost"]);
  context.mock.timers.tick(1000);
  for (let n = 0; n < 3; n++) await turn();
  assert.deepEqual([asked, state()], [["", "7"], ["live"]]);
  stop();
  assert.deepEqual(state(), []);
});

test("a stream is made again behind the last frame that was taken, where the server or the one who reads misses some", async (context) => {
  const events = (...ids: number[]): string => ids.map((id) => `id: ${id}\ndata: {}\n\n`).join("");
  const asked = serve(context, [() => opened(events(7) + ": dropped 1\n\n" + events(9)), () => opened(events(8, 10, 11)), () => opened(events(9, 10))]);
  const taken: number[] = [];
  const onFrame = ({ id }: { id: string }): "early" | void => {
    if (taken.length > 0 && Number(id) !== (taken.at(-1) ?? 0) + 1) return "early";
    taken.push(Number(id));
  };
  const stop = follow("/stream", { onFrame });
  for (let attempt = 1; attempt <= 3; attempt++) {
    for (let n = 0; n < 5; n++) await turn();
    assert.deepEqual(state(), [attempt < 3 ? "lost" : "live"]);
    context.mock.timers.tick(1000);
  }
  assert.deepEqual([asked, taken], [["", "7", "8"], [7, 8, 9, 10]]);
  stop();
});

test("a server that accepts and never answers is asked again, behind the last event", async (context) => {
  serve(context, []);
  const signals: AbortSignal[] = [];
  const asked: string[] = [];
  globalThis.fetch = (_, init) => {
    const signal = init?.signal as AbortSignal;
    signals.push(signal);
    asked.push(new Headers(init?.headers).get("last-event-id") ?? "");
    if (signals.length > 1) return Promise.resolve(opened());
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  };
  const stop = follow("/stream", { after: "5", onFrame: () => false });
  for (let n = 0; n < 3; n++) await turn();
  context.mock.timers.tick(59_999);
  assert.deepEqual([state(), signals[0]?.aborted], [["connecting"], false]);
  context.mock.timers.tick(1);
  for (let n = 0; n < 3; n++) await turn();
  assert.deepEqual([state(), signals[0]?.aborted], [["lost"], true]);
  context.mock.timers.tick(1000);
  for (let n = 0; n < 3; n++) await turn();
  assert.deepEqual([asked, state()], [["5", "5"], ["live"]]);
  context.mock.timers.tick(119_999);
  assert.deepEqual(state(), ["live"]);
  stop();
});

test("a server that never answers is not asked again once the subscription has ended", async (context) => {
  serve(context, []);
  const signals: AbortSignal[] = [];
  globalThis.fetch = (_, init) => {
    signals.push(init?.signal as AbortSignal);
    return new Promise(() => undefined);
  };
  const stop = follow("/stream", { onFrame: () => false });
  stop();
  context.mock.timers.tick(600_000);
  assert.deepEqual([signals.map((signal) => signal.aborted), state()], [[true], []]);
});

test("a person who is asked for a token may take longer than a server", async (context) => {
  const asked = serve(context, [refusing(401)]);
  const stop = follow("/stream", { onFrame: () => false });
  for (let n = 0; n < 3; n++) await turn();
  context.mock.timers.tick(150_000);
  assert.deepEqual([asked.length, state()], [1, ["connecting"]]);
  wanted.peek()?.give("given later");
  for (let n = 0; n < 3; n++) await turn();
  assert.deepEqual([asked.length, state()], [2, ["live"]]);
  stop();
});

test("a refusal stays one until there is another token", async (context) => {
  const asked = serve(context, [refusing(403)]);
  const told: number[] = [];
  const stop = follow("/stream", { onFrame: () => false, onRefused: ({ status }) => told.push(status) });
  for (let n = 0; n < 3; n++) await turn();
  context.mock.timers.tick(600_000);
  assert.deepEqual([asked.length, state(), told], [1, ["refused"], [403]]);
  token.value = "another";
  for (let n = 0; n < 3; n++) await turn();
  assert.deepEqual([asked.length, state()], [2, ["live"]]);
  stop();
  token.value = "a third";
  for (let n = 0; n < 3; n++) await turn();
  assert.equal(asked.length, 2);
});

test("too many requests are no refusal", async (context) => {
  const asked = serve(context, [refusing(429)]);
  const stop = follow("/stream", { onFrame: () => false });
  for (let n = 0; n < 3; n++) await turn();
  assert.deepEqual(state(), ["lost"]);
  context.mock.timers.tick(1000);
  for (let n = 0; n < 3; n++) await turn();
  assert.deepEqual([asked.length, state()], [2, ["live"]]);
  stop();
});
