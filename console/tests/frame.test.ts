/** What surrounds every view: menus, the palette, the keys, and widths between a phone and a desk. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { clean, examine, launch, open, settle, shoot } from "./browser.ts";
import { everything, Greenroom } from "./greenroom.ts";

let server: Greenroom;
let browser: Browser;

before(async () => {
  browser = await launch();
  server = await Greenroom.start(everything, { config: '[console]\ntitle = "Production of the northern region, second site"\n' });
  await server.execute("refund", { order: "A-1", amount: 1 }, { userId: "grace" });
  await server.execute("expense-approval", { employee: "Ada", amount: 900 });
});
after(async () => {
  await browser.close();
  await server.end();
});

test("nothing leaves the window at any width", async () => {
  const { page, faults } = await open(browser);
  for (const width of [320, 390, 600, 721, 800, 900, 1099, 1100]) {
    await page.setViewportSize({ width, height: 800 });
    for (const path of ["", "/executions", "/inbox", "/workflows/newsletter", "/agents/assistant", "/observe", "/observe?tab=logs", "/connect"]) {
      await page.goto(`${server.console}/console${path}`);
      await settle(page);
      const { sideways, top } = await page.evaluate(() => ({
        sideways: document.documentElement.scrollWidth - document.documentElement.clientWidth,
        top: document.querySelector(".top")?.scrollWidth ?? 0,
      }));
      assert.ok(sideways <= 0, `${path} at ${width} is too wide by ${sideways} px`);
      assert.ok(top <= width, `the top bar of ${path} at ${width} is ${top} px wide`);
    }
    await page.goto(`${server.console}/console/executions`);
    for (const name of ["Settings", "Saved filters"]) {
      await page.locator("summary", { hasText: name }).or(page.locator(`summary[aria-label="${name}"]`)).click();
      await inWindow(page, `${name} at ${width}`);
      await page.keyboard.press("Escape");
    }
  }
  clean(faults);
});

async function inWindow(page: Page, what: string): Promise<void> {
  await page.waitForFunction(() => {
    const box = document.querySelector(".menu[open] > div")?.getBoundingClientRect();
    return box !== undefined && box.left >= 12 && box.right <= innerWidth - 12;
  }, undefined, { timeout: 3000 }).catch(() => assert.fail(`${what} is not in the window`));
}

test("g and a letter go to a view, j and k through its rows", async () => {
  const { page, faults } = await open(browser);
  await page.goto(`${server.console}/console/connect`);
  await settle(page);
  for (const [key, path] of Object.entries({ w: "/workflows", e: "/executions", i: "/inbox", a: "/agents", o: "/observe", c: "/connect", h: "" })) {
    await page.keyboard.type(`g${key}`);
    await page.waitForURL(`**/console${path}`);
  }
  await page.keyboard.type("gw");
  const links = page.locator(".cards li > a");
  await links.first().waitFor();
  await page.keyboard.type("jjk");
  await page.waitForFunction(() => document.activeElement === document.querySelector(".cards li > a"));
  await page.keyboard.type("j");
  const chosen = await links.nth(1).getAttribute("href");
  await page.keyboard.press("Enter");
  await page.waitForURL(`**${chosen}`);
  await page.keyboard.type("go");
  await page.locator(".tbody [role=row]").first().waitFor();
  await page.keyboard.type("j");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/observe/traces/*");
  clean(faults);
});

test("the palette finds by name, says what it leaves out, and gives the focus back", async () => {
  for (let n = 0; n < 45; n++) await server.execute("refund", { order: `B-${n}`, amount: 1 });
  const { page, faults } = await open(browser);
  await page.goto(`${server.console}/console/workflows`);
  await settle(page);
  await page.locator(".cards li > a").first().waitFor();
  await page.keyboard.type("j");
  await page.locator(".cards li > a:focus").waitFor();
  await page.keyboard.press("Control+k");
  const field = page.getByRole("combobox");
  await page.getByText(/^The first 40 of \d+/).waitFor();
  await shoot(page, "palette");
  faults.push(...(await examine(page)));
  await page.keyboard.press("Escape");
  await field.waitFor({ state: "detached" });
  await page.locator(".cards li > a:focus").waitFor();
  await page.keyboard.press("Control+k");
  await field.fill("booking");
  await page.getByRole("option", { name: /Booking/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL("**/workflows/flaky");
  await page.keyboard.press("Control+k");
  await field.fill("view");
  await page.keyboard.press("ArrowDown");
  await page.locator('[aria-selected="true"]', { hasText: /Executions/ }).waitFor();
  await page.keyboard.press("ArrowUp");
  await page.locator('[aria-selected="true"]', { hasText: /Home/ }).waitFor();
  clean(faults);
});

test("Tab goes through a page in its order, and what has the focus is seen", async () => {
  const { page, faults } = await open(browser);
  for (const path of ["/workflows/newsletter", "/observe", "/connect"]) {
    await page.goto(`${server.console}/console${path}`);
    await settle(page);
    const first = await focused(page);
    assert.equal(first?.text, "To the content");
    for (let stop = await focused(page); stop !== null && stop.text !== "To the content"; stop = await focused(page)) {
      assert.ok(stop.isSeen, `${path}: nothing shows that ${stop.text} has the focus`);
    }
  }
  clean(faults);
});

/** Presses Tab, and tells what has the focus then; null behind the last element. */
async function focused(page: Page): Promise<{ text: string; isSeen: boolean } | null> {
  await page.keyboard.press("Tab");
  return page.evaluate(() => {
    const element = document.activeElement;
    if (!element || element === document.body) return null;
    // Drawings have a stroke, and boxes that are not drawn have it at their label; parts of a field for a date are the browser's.
    const shown = [element, element.nextElementSibling].some((each) => each && getComputedStyle(each).outlineStyle !== "none");
    const isOther = element.closest("svg") !== null || element.matches("input[type^=date]");
    return { text: (element.getAttribute("aria-label") ?? element.textContent ?? "").trim(), isSeen: shown || isOther };
  });
}
