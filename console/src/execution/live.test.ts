import assert from "node:assert/strict";
import { test } from "node:test";
import { live } from "./live.ts";

const seen = { hidden: false, addEventListener: () => undefined, removeEventListener: () => undefined };
globalThis.document = seen as unknown as Document;

/** Lets everything happen that waits for nothing. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("an event before which others are missing is not shown before they are there", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const types = ["", "workflow-start", "step-start", "step-suspended", "workflow-suspended"];
  const answers = [[1, 2, 4], [3, 4]];
  const asked: string[] = [];
  globalThis.fetch = async (_, init) => {
    asked.push(new Headers(init?.headers).get("last-event-id") ?? "");
    const text = (answers[asked.length - 1] ?? []).map((seq) => `id: ${seq}\ndata: {"type":"${types[seq]}"}\n\n`).join("");
    return new Response(new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode(text)) }));
  };
  const { events, stop } = live("w", "e");
  const shown = async (): Promise<number[]> => {
    for (let n = 0; n < 5; n++) await turn();
    context.mock.timers.tick(16);
    return events.peek().map(({ seq }) => seq);
  };
  assert.deepEqual(await shown(), [1, 2]);
  context.mock.timers.tick(1000);
  assert.deepEqual(await shown(), [1, 2, 3, 4]);
  assert.deepEqual(asked, ["", "2"]);
  stop();
});
