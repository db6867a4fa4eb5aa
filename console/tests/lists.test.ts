/** Lists by name and filter: what was removed, what is asked for by half, and what a phone has room for. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Locator, Page } from "playwright-core";
import { clean, examine, launch, modes, open, settle, shoot } from "./browser.ts";
import { everything, Greenroom } from "./greenroom.ts";

let server: Greenroom;
let browser: Browser;

before(async () => {
  browser = await launch();
  server = await Greenroom.start(everything);
  await server.ended("flaky", await server.execute("flaky", {}, { executionId: "failed-1" }));
  await server.ended("refund", await server.execute("refund", { order: "A-1", amount: 1 }));
});
after(async () => {
  await browser.close();
  await server.end();
});

/** The field of the filter: its label contains its options. */
function workflowOf(page: Page): Locator {
  return page.locator("label", { hasText: /^Workflow/ }).locator("select");
}

test("workflows that were removed are listed, and lead to their executions", async () => {
  const { page, faults } = await open(browser, undefined, (text) => text.includes("404"));
  const gone = { running: 2, suspended: 0, completed: 1, error: 0, cancelled: 0, all: 3 };
  await page.route(/\/workflows\/executions\/counts/, async (route) => {
    const of = { ...gone, workflowId: "gone" };
    if (route.request().url().includes("workflowId=gone")) return route.fulfill({ json: { success: true, data: { workflows: [of], total: gone, isComplete: true } } });
    const { data } = (await (await route.fetch()).json()) as { data: { workflows: object[] } };
    return route.fulfill({ json: { success: true, data: { ...data, workflows: [...data.workflows, of] } } });
  });
  await page.goto(`${server.console}/console/workflows`);
  const card = page.locator(".cards li", { hasText: "removed" });
  await card.getByText("2 running").waitFor();
  await card.getByRole("link", { name: "Its executions" }).click();
  await page.waitForURL("**/executions?workflow=gone");
  assert.equal(await workflowOf(page).locator("optgroup[label=Removed] option:checked").textContent(), "gone");
  await page.goto(`${server.console}/console/workflows/gone`);
  await page.getByText("The configuration no longer has this workflow").waitFor();
  faults.push(...(await examine(page)));
  clean(faults);
});

test("a name that is nearly right is put right", async () => {
  const { page, faults } = await open(browser, undefined, (text) => text.includes("404"));
  await page.goto(`${server.console}/console/workflows/refnd`);
  await page.getByRole("link", { name: "refund" }).click();
  await page.getByRole("heading", { name: "Refund" }).waitFor();
  clean(faults);
});

test("the begin of a version is completed, or said to be too little", async () => {
  const { definitionHash } = await server.call<{ definitionHash: string }>("GET", "/workflows/refund");
  const { page, faults } = await open(browser);
  const begin = definitionHash.slice(0, 8);
  await page.goto(`${server.console}/console/executions?version=${begin}`);
  await page.getByText("With a workflow chosen, its begin is enough").waitFor();
  await workflowOf(page).selectOption("Refund");
  await page.waitForURL(`**version=${definitionHash}*`);
  await page.getByText("1, newest first").waitFor();
  await page.goto(`${server.console}/console/executions?workflow=refund&version=zz`);
  await page.getByText("No version of this workflow that has executions begins with these").waitFor();
  clean(faults);
});

test("a search goes on by itself over pages in which nothing fits", async () => {
  const { page, faults } = await open(browser);
  let pages = 0;
  await page.route(/\/workflows\/executions\?/, (route) => {
    pages += 1;
    return route.fulfill({ json: { success: true, data: { executions: [], nextCursor: "0".repeat(32) } } });
  });
  await page.goto(`${server.console}/console/executions?error=nothing+like+this`);
  await page.getByText("None of those searched so far fits").waitFor();
  assert.equal(pages, 10);
  await page.getByRole("button", { name: "Search older ones" }).click();
  clean(faults);
});

test("what no longer fits says so, also behind the first page", async () => {
  const { executions } = await server.call<{ executions: Record<string, unknown>[] }>("GET", "/workflows/executions");
  const { page, faults } = await open(browser);
  const ended = ["run-1", "run-290"];
  let haveEnded = false;
  await page.route(/\/workflows\/executions\?/, (route) => {
    const query = new URL(route.request().url()).searchParams;
    const [from, limit] = [Number(query.get("cursor") ?? 0), Number(query.get("limit") ?? 20)];
    const rows = Array.from({ length: Math.min(limit, 300 - from) }, (_, index) => {
      const startAt = new Date(Date.parse("2026-11-20T00:00:00Z") - (from + index) * 1000).toISOString();
      return { ...executions[0], executionId: `run-${from + index}`, status: "running", startAt, endAt: null };
    });
    const open = rows.filter(({ executionId }) => !haveEnded || !ended.includes(executionId));
    return route.fulfill({ json: { success: true, data: { executions: open, nextCursor: from + limit < 300 ? String(from + limit) : null } } });
  });
  await page.goto(`${server.console}/console/executions?status=running`);
  const row = (id: string): Locator => page.locator("[data-row]").filter({ has: page.getByRole("link", { name: id, exact: true }) });
  await row("run-1").getByText("running").waitFor();
  haveEnded = true;
  await row("run-1").getByText("left the list").waitFor();
  await row("run-2").getByText("running").waitFor();
  haveEnded = false;
  await page.waitForFunction(() => {
    scrollTo(0, document.documentElement.scrollHeight);
    return document.querySelector('[role=table] a[href$="run-290"]') !== null;
  });
  haveEnded = true;
  await row("run-290").getByText("left the list").waitFor();
  clean(faults);
});

test("executions are found by the door through which they were started", async () => {
  const { page, faults } = await open(browser);
  const asked = new Set<string | null>();
  await page.route(/\/workflows\/executions\?.*via=/, (route) => {
    asked.add(new URL(route.request().url()).searchParams.get("via"));
    return route.fulfill({ json: { success: true, data: { executions: [], nextCursor: null } } });
  });
  await page.goto(`${server.console}/console/executions`);
  await page.getByRole("search").getByText("More", { exact: true }).click();
  await page.getByLabel("Started through").fill("mcp:desk");
  await page.waitForURL(/via=mcp%3Adesk/);
  await page.getByText("No execution fits").waitFor();
  assert.deepEqual([...asked], ["mcp:desk"]);
  faults.push(...(await examine(page)));

  await page.route(/\/executions\/failed-1\/state/, async (route) => {
    const { data } = (await (await route.fetch()).json()) as { data: object };
    return route.fulfill({ json: { success: true, data: { ...data, via: "openai" } } });
  });
  await page.goto(`${server.console}/console/executions/flaky/failed-1`);
  assert.match((await page.getByRole("link", { name: "openai" }).getAttribute("href")) ?? "", /executions\?via=openai$/);
  clean(faults);
});

test("on a phone filters are behind a button that counts them", async () => {
  const { page, faults } = await open(browser, modes[2]);
  await page.goto(`${server.console}/console/executions?status=error&workflow=flaky`);
  await settle(page);
  const form = page.getByRole("search");
  const button = page.getByRole("button", { name: "Filters (2)" });
  assert.equal(await form.isVisible(), false);
  await button.click();
  await form.waitFor();
  faults.push(...(await examine(page)));
  // there is a link to what a row stands for
  await page.locator("[data-row]").first().getByRole("link", { name: "failed-1" }).waitFor();
  await page.locator("label", { hasText: /^Status/ }).locator("select").selectOption("");
  await page.getByRole("button", { name: "Filters (1)" }).waitFor();
  // times and values of events are in two lines of a row
  await page.goto(`${server.console}/console/executions/flaky/failed-1`);
  const row = page.locator(".event", { hasText: "attempt failed, retries" }).first();
  await row.locator(".offset").waitFor();
  await row.locator(".detail").waitFor();
  await page.goto(`${server.console}/console`);
  await page.locator(".lines").getByText("Booking").first().waitFor();
  await shoot(page, "home-names-phone");
  clean(faults);
});

test("the palette finds failures by their text, and agents have the keys of lists", async () => {
  const { page, faults } = await open(browser);
  await page.goto(`${server.console}/console/agents`);
  await page.locator(".cards li > a").first().waitFor();
  await page.keyboard.type("j");
  await page.locator(".cards li > a:focus").waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill("cannot be reached");
  await page.getByRole("option", { name: /^Failed .*cannot be reached.*Booking failed-1$/ }).waitFor();
  await page.getByRole("option", { name: /All with “cannot be reached”/ }).click();
  await page.waitForURL(/executions\?status=error&error=cannot\+be\+reached/);
  await page.locator("[data-row]", { hasText: "Booking" }).first().waitFor();
  clean(faults);
});

test("without a clipboard ids are copied the old way", async () => {
  const { page, faults } = await open(browser);
  await page.addInitScript(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
  await page.goto(`${server.console}/console/executions/flaky/failed-1`);
  await page.locator("h1").getByRole("button", { name: "Copy failed-1" }).click();
  await page.locator("h1").getByText("Copied").waitFor();
  clean(faults);
});
