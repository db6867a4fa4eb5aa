/** What Connect shows works as it is: its commands are run, and its requests are made. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import type { Browser, Page } from "playwright-core";
import { clean, desk, examine, launch, open, shoot } from "./browser.ts";
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
  await runAll(page);
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

test("its commands take the token that a server wants", async () => {
  const key = "only-for-this-test-0123456789abcdef";
  const hash = createHash("sha256").update(key).digest("hex");
  const closed = await Greenroom.start(everything, { config: `[auth]\ndefault = "private"\n\n[[auth.api_keys]]\nid = "connect"\nhash = "sha256:${hash}"\n` });
  try {
    // the first request has no token, and browsers report that
    const { page, faults } = await open(browser, desk, (text) => text.includes("401"));
    await page.goto(`${closed.console}/console/connect`);
    await page.getByLabel("Token", { exact: true }).fill(key);
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText("from the variable TOKEN").waitFor();
    await runAll(page, { TOKEN: key });
    await page.getByRole("button", { name: "Try it: Ask an agent" }).click();
    await page.getByLabel("Answer: Ask an agent").getByText("hello").waitFor();
    clean(faults);
  } finally {
    await closed.end();
  }
});

/** Runs each command of the page, and expects an answer. */
async function runAll(page: Page, environment: Record<string, string> = {}): Promise<void> {
  await page.getByRole("heading", { name: "Prometheus" }).waitFor();
  const codes = await page.locator(".snippet pre").allTextContents();
  const commands = codes.filter((code) => code.startsWith("curl")).map((code) => code.split(" -o ")[0] ?? code);
  assert.ok(commands.length >= 7, `${commands.length} commands`);
  for (const command of commands) {
    // Streams of what waits for a person do not end: one line is enough.
    const isStream = /^curl -\w*N/.test(command);
    const whole = `${command} --fail --max-time 60`;
    const script = isStream ? `head -n 1 < <(${whole})` : whole;
    const { stdout } = await run("bash", ["-c", script], { maxBuffer: 1e8, env: { ...process.env, ...environment } });
    assert.ok(stdout.length > 0, command);
  }
}
