/** A list of a hundred thousand executions scrolls, and draws only what is seen. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { clean, launch, open, settle } from "./browser.ts";
import { everything, Greenroom } from "./greenroom.ts";

const count = 100_000;
const rowsMax = 80;
/** Milliseconds of a frame, on a machine that does other things: ten times what none takes alone. */
const frameMax = 500;
/** Part of the frames that may take longer. */
const slowMax = 0.1;

test("a hundred thousand executions are scrolled", async (context) => {
  const server = await Greenroom.start(everything);
  const browser = await launch();
  try {
    await server.execute("refund", { order: "A-1", amount: 1 });
    const { executions } = await server.call<{ executions: Record<string, unknown>[] }>("GET", "/workflows/executions");
    const { page, faults } = await open(browser);
    // The pages of the API, as many as a store of that size would give.
    await page.route(/\/workflows\/executions\?/, (route) => {
      const query = new URL(route.request().url()).searchParams;
      const [from, limit] = [Number(query.get("cursor") ?? 0), Number(query.get("limit") ?? 20)];
      const rows = Array.from({ length: Math.min(limit, count - from) }, (_, index) => ({ ...executions[0], executionId: `refund-${String(from + index).padStart(6, "0")}` }));
      const nextCursor = from + limit < count ? String(from + limit) : null;
      return route.fulfill({ json: { success: true, data: { executions: rows, nextCursor } } });
    });
    await page.goto(`${server.console}/console/executions`);
    await settle(page);

    const seen = await page.evaluate(async ([last, frameMax]) => {
      const gaps: number[] = [];
      let before = performance.now();
      let most = 0;
      while (!document.querySelector(`[role=table] a[href$="${last}"]`)) {
        scrollTo(0, document.documentElement.scrollHeight);
        await new Promise(requestAnimationFrame);
        const now = performance.now();
        gaps.push(now - before);
        before = now;
        most = Math.max(most, document.querySelectorAll("[data-row]").length);
      }
      return { frames: gaps.length, slow: gaps.filter((gap) => gap > frameMax).length, longest: Math.max(...gaps), most };
    }, [`refund-${String(count - 1).padStart(6, "0")}`, frameMax] as const);
    context.diagnostic(`${seen.frames} frames, ${seen.slow} of them over ${frameMax} ms, the longest ${Math.round(seen.longest)} ms, at most ${seen.most} rows`);
    assert.ok(seen.most <= rowsMax, `${seen.most} rows`);
    assert.ok(seen.slow <= seen.frames * slowMax, `${seen.slow} of ${seen.frames} frames took more than ${frameMax} ms`);
    assert.ok((await page.locator("[data-row]").count()) <= rowsMax);
    clean(faults);
  } finally {
    await browser.close();
    await server.end();
  }
});
