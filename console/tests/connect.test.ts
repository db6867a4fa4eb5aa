/** What Connect shows works as it is: its commands are run, and its requests are made. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import type { Browser } from "playwright-core";
import { clean, examine, launch, open, shoot } from "./browser.ts";
import { everything, Greenroom } from "./greenroom.ts";

const run = promisify(execFile);
let server: Greenroom;
let browser: Browser;

before(async () => {
  browser = await launch();
  server = await Greenroom.start(everything);
  await server.execute("expense-approval", { employee: "Ada", amount: 9 });
});
after(async () => {
  await browser.close();
  await server.end();
});

test("its commands work", async () => {
  const { page, faults } = await open(browser);
  await page.goto(`${server.console}/console/connect`);
  await page.getByRole("heading", { name: "Prometheus" }).waitFor();
  const codes = await page.locator(".snippet pre").allTextContents();
  const commands = codes.filter((code) => code.startsWith("curl")).map((code) => code.split(" -o ")[0] ?? code);
  assert.equal(commands.length, 8);
  for (const command of commands) {
    // Streams of what waits for a person do not end: 28 says that the time was over.
    const { stdout } = await run("bash", ["-c", `${command} --fail --max-time 2 || [ $? = 28 ]`], { maxBuffer: 1e8 });
    assert.ok(stdout.length > 0, command);
  }
  clean(faults);
});

test("each request that it offers has an answer", async () => {
  const { page, faults } = await open(browser);
  await page.goto(`${server.console}/console/connect`);
  const buttons = page.getByRole("button", { name: /^Try it/ });
  await buttons.first().waitFor();
  // Those that run have another name.
  const names = await buttons.evaluateAll((all) => all.map((each) => each.getAttribute("aria-label") ?? ""));
  for (const name of names) await page.getByRole("button", { name, exact: true }).click();
  await page.waitForFunction((wanted) => document.querySelectorAll(".answered").length === wanted, names.length);
  assert.equal(await page.locator(".connect .problem").count(), 0);
  await page.getByLabel("Answer: A chat with useChat").getByText("text-delta").waitFor();
  faults.push(...(await examine(page)));
  await shoot(page, "connect-answers");
  await page.getByRole("link", { name: "Open the execution" }).first().click();
  await page.waitForURL("**/executions/expense-approval/*");
  clean(faults);
});
