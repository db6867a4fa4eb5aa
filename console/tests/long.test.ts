/** An execution with thousands of events opens fast, and draws only what is seen. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { clean, launch, open, shoot } from "./browser.ts";
import { everything, Greenroom } from "./greenroom.ts";

/** Each lane records two events. */
const lanes = 10_000;
const rowsMax = 150;
/** On a machine that does other things; alone it takes a fraction. */
const openingMax = 60_000;

test("an execution of twenty thousand events opens", async (context) => {
  const server = await Greenroom.start(everything);
  const browser = await launch();
  try {
    const id = await server.execute("bulk", { count: lanes });
    await server.ended("bulk", id);
    const { page, faults } = await open(browser);
    await page.goto(`${server.console}/console/executions`);
    const link = page.locator(`[role=table] a[href$="/${id}"]`);
    await link.waitFor();
    const began = Date.now();
    await link.click();
    await page.getByText(/2\d[,. ]?\d{3} recorded/).waitFor();
    const took = Date.now() - began;
    context.diagnostic(`opened in ${took} ms`);
    assert.ok(took < openingMax, `${took} ms`);

    const drawn = (): Promise<number> => page.evaluate(() => document.querySelectorAll(".events .event, .waterfall .line").length);
    assert.ok((await drawn()) < rowsMax, `${await drawn()} rows`);
    for (const part of [0.5, 0.1, 1]) {
      await page.locator(".events .port").evaluate((port, part) => (port.scrollTop = port.scrollHeight * part), part);
      await page.locator(".waterfall .port").evaluate((port, part) => (port.scrollTop = port.scrollHeight * part), part);
      await page.waitForTimeout(100);
      assert.ok((await drawn()) < rowsMax, `${await drawn()} rows`);
    }
    const elements = await page.evaluate(() => document.querySelectorAll("*").length);
    context.diagnostic(`${elements} elements`);
    assert.ok(elements < 2500, `${elements} elements`);

    // the slider goes to the middle, and shows it as it was then
    const slid = Date.now();
    await page.getByLabel("Event", { exact: true }).fill("10000");
    await page.getByText("as it was at event 10").waitFor();
    context.diagnostic(`the slider moved in ${Date.now() - slid} ms`);
    await shoot(page, "long-light");
    clean(faults);
  } finally {
    await browser.close();
    await server.end();
  }
});
