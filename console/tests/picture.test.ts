/** The picture of the README: an execution that waits for its manager. `UPDATE_DOCS=1` takes it anew. */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { clean, launch, open, settle, shoot } from "./browser.ts";
import { everything, Greenroom } from "./greenroom.ts";

const place = fileURLToPath(new URL("../../docs/console.png", import.meta.url));
/** A repository keeps every version of it. */
const bytesMax = 200_000;

test("the picture of the README", async () => {
  const server = await Greenroom.start(everything);
  const browser = await launch();
  try {
    const input = { topics: ["actors", "rooms", "waits"], audience: "team" };
    const id = await server.execute("newsletter", input, { executionId: "letter-12", userId: "ada" });
    const { page, faults } = await open(browser, { name: "picture", theme: "light", width: 1280, height: 800 });
    await page.goto(`${server.console}/console/executions/newsletter/${id}?step=rounds%5B0%5D%2Feditor`);
    await settle(page);
    await page.getByText("waits for an answer at").waitFor();
    const picture = await page.screenshot();
    assert.ok(picture.length < bytesMax, `${picture.length} bytes`);
    await shoot(page, "picture");
    if (process.env.UPDATE_DOCS) await writeFile(place, picture);
    assert.equal((await readFile(place)).subarray(1, 4).toString(), "PNG");
    clean(faults);
  } finally {
    await browser.close();
    await server.end();
  }
});
