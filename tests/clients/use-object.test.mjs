// The hook useObject on a page: it reads plain JSON as it grows.

import assert from "node:assert/strict";
import { before, describe, test } from "node:test";

import { z } from "zod";

import { RELEASES, api, freshId, mount, openPage } from "./support.mjs";

const SCHEMA = z.object({ answer: z.string(), sure: z.boolean() });

before(openPage);

for (const { name, hooks } of RELEASES) {
  const open = async () => {
    const { experimental_useObject: useObject } = await hooks();
    const ends = [];
    const options = {
      id: freshId(),
      api: api("assistant", "stream-object"),
      schema: SCHEMA,
      headers: { Accept: "text/plain" },
      onFinish: (end) => ends.push(end),
    };
    const page = await mount(() => useObject(options));
    const submit = (input) => page.now().submit({ input, schema: z.toJSONSchema(SCHEMA) });
    return { ...page, ends, submit };
  };

  describe(`useObject of ${name}`, () => {
    test("ends with the object that meets the schema", async (t) => {
      const page = await open();
      t.after(page.unmount);
      page.submit("OBJECT please");
      const given = await page.until("the object", ({ isLoading, object }) => !isLoading && object);
      const expected = { answer: "OBJECT please", sure: true };
      assert.deepEqual(given.object, expected);
      assert.equal(given.error, undefined);
      assert.equal(page.ends.length, 1);
      assert.deepEqual([page.ends[0].object, page.ends[0].error], [expected, undefined]);
    });

    test("a failure before the first byte is an error with its text", async (t) => {
      const page = await open();
      t.after(page.unmount);
      page.submit("ERROR");
      const { error } = await page.until("the error", ({ error }) => error);
      assert.match(error.message, /not in the mood/);
    });

    test("an object that misses the schema does not pass for one", async (t) => {
      const page = await open();
      t.after(page.unmount);
      page.submit("WRONG");
      const { error } = await page.until("the error", ({ error, isLoading }) => error && !isLoading);
      assert.ok(error instanceof Error);
      assert.equal(page.ends.filter((end) => end.object).length, 0);
    });
  });
}
