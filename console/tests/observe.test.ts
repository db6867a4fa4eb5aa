/** Traces and logs of executions and agents, as somebody reads them who looks for a failure. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { clean, desk, examine, launch, modes, open, settle, shoot } from "./browser.ts";
import { everything, Greenroom } from "./greenroom.ts";

let server: Greenroom;
let browser: Browser;
let failed: string;

before(async () => {
  browser = await launch();
  server = await Greenroom.start(everything);
  failed = await server.execute("flaky", { note: "first" });
  await server.execute("expense-approval", { employee: "Ada", amount: 900 });
  await server.call("POST", "/agents/assistant/text", { input: "BREAK it" }).catch(() => undefined);
  await server.ended("flaky", failed);
});
after(async () => {
  await browser.close();
  await server.end();
});

test("logs are filtered, searched, paused and gone back in", async () => {
  const { page, faults } = await open(browser);
  await page.goto(`${server.console}/console/observe?tab=logs`);
  const lines = page.locator(".loglines li");
  await page.getByLabel("Workflow").selectOption("Booking");
  await page.getByLabel("Level").selectOption("at least warn");
  await lines.first().getByRole("link", { name: /^Booking/ }).waitFor();
  await page.getByLabel("Text in these lines").fill("Refused");
  await lines.locator("mark").first().waitFor();
  assert.equal(await lines.locator("mark").first().textContent(), "refused");
  await page.getByText(/^\d of the \d lines shown have the text, newest first, live$/).waitFor();
  await page.getByLabel("Text in these lines").fill("");

  await page.getByRole("button", { name: "Pause" }).click();
  const before = await lines.count();
  const next = await server.execute("flaky", { note: "second" });
  await server.ended("flaky", next);
  await page.getByText(/paused: \d newer/).waitFor();
  assert.equal(await lines.count(), before);
  await page.getByRole("button", { name: "Continue" }).click();
  await lines.locator(`a[href$="${next}"]`).first().waitFor();

  await page.getByLabel("Jump to").fill("2020-01-01T10:00:00");
  await page.getByText("Nothing was logged").waitFor();
  await page.getByRole("button", { name: "To the newest" }).click();
  await lines.locator(`a[href$="${next}"]`).first().click();
  await page.waitForURL(`**/executions/flaky/${next}`);
  clean(faults);
});

test("a trace names its execution, and shows the attributes of its spans", async () => {
  for (const mode of [desk, modes[2] ?? desk]) {
    const { page, faults } = await open(browser, mode);
    await page.goto(`${server.console}/console/observe`);
    await page.getByRole("combobox", { name: "Of" }).selectOption("Booking");
    const rows = page.locator(".tbody [role=row]");
    await rows.first().getByText("flaky").waitFor();
    await rows.last().click();
    await settle(page);
    await page.locator(`.heading a[href$="${failed}"]`).waitFor();
    await page.getByLabel("Selected span").getByText("cannot be reached").waitFor();
    await page.getByLabel("Waterfall of steps").getByText("step book").first().click();
    await page.getByLabel("Selected span").getByText("workflow.step.attempt").waitFor();
    faults.push(...(await examine(page)));
    await shoot(page, `trace-failed-${mode.name}`);
    await page.goBack();
    await page.getByRole("combobox", { name: "Of" }).selectOption("workflows");
    await page.locator(".status", { hasText: "open" }).first().waitFor();
    await page.getByRole("combobox", { name: "Of" }).selectOption("agents");
    await rows.first().getByText("Assistant", { exact: true }).waitFor();
    await page.context().close();
    clean(faults);
  }
});

test("older lines are read on demand", async () => {
  const { page, faults } = await open(browser);
  await page.goto(`${server.console}/console/observe?tab=logs`);
  const lines = page.locator(".loglines li");
  await lines.first().waitFor();
  await page.getByRole("button", { name: "Older lines" }).waitFor({ state: "detached" });
  await Promise.all(Array.from({ length: 150 }, (_, index) => server.execute("letter", { text: String(index) })));
  // lines are stored a moment after they were written: until there is more than a page
  const older = page.getByRole("button", { name: "Older lines" });
  do {
    await page.reload();
    await lines.first().waitFor();
  } while (!(await older.isVisible()));
  await page.getByRole("button", { name: "Pause" }).click();
  await older.click();
  await page.getByRole("button", { name: "Older lines" }).waitFor({ state: "detached" });
  assert.ok((await lines.count()) > 300);
  await page.context().close();
  clean(faults);
});
