/** A page of another site can neither frame the console nor post to the server behind it. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { launch } from "./browser.ts";
import { everything, Greenroom } from "./greenroom.ts";

test("a foreign page can neither frame nor post", async () => {
  const server = await Greenroom.start(everything);
  const browser = await launch();
  const site = createServer((_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>foreign</title>"));
  await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
  try {
    const page = await (await browser.newContext()).newPage();
    await page.goto(`http://evil.example:${(site.address() as AddressInfo).port}/`);
    const target = `${server.base}/console`;

    const framed = await page.evaluate(async (address) => {
      const frame = document.createElement("iframe");
      frame.src = address;
      const loaded = new Promise((resolve) => frame.addEventListener("load", resolve));
      document.body.append(frame);
      await loaded;
      return frame.contentDocument === null;
    }, target);
    assert.ok(framed, "the frame is of another origin, or an error");
    const inner = page.frames().find((frame) => frame !== page.mainFrame());
    assert.ok(!inner || (await inner.locator(".frame").count()) === 0, "the console is in the frame");

    // as scripts post, with and without what needs a preflight, and as forms do
    const address = `${server.base}/workflows/noop/execute`;
    const count = async (): Promise<number> => (await server.call<{ total: { all: number } }>("GET", "/workflows/executions/counts")).total.all;
    const before = await count();
    for (const type of ["application/json", "text/plain"]) {
      const said = await page.evaluate(
        async ([url, type]) => {
          try {
            const body = JSON.stringify({ input: { text: "foreign" } });
            const response = await fetch(url ?? "", { method: "POST", body, headers: { "content-type": type ?? "" } });
            return `${response.status}`;
          } catch {
            return "refused";
          }
        },
        [address.replace("noop", "reminder"), type],
      );
      assert.notEqual(said, "200", type);
    }
    await page.evaluate((url) => {
      const form = document.createElement("form");
      Object.assign(form, { method: "post", action: url, enctype: "text/plain", target: "other" });
      const field = document.createElement("input");
      Object.assign(field, { name: '{"input":{"text":"foreign', value: '"}}' });
      form.append(field);
      document.body.append(form);
      form.submit();
    }, address.replace("noop", "reminder"));
    await page.waitForTimeout(500);
    assert.equal(await count(), before, "something was started");
  } finally {
    await browser.close();
    site.close();
    await server.end();
  }
});
