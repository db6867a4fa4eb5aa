/**
 * Walks through every view against a running server: no view scrolls sideways, has a finding of axe, an error
 * in its console, or runs text that callers chose.
 *
 * GREENROOM: address of a server that runs tests/config.toml. CONSOLE: address of its console, if another
 * program serves it; otherwise this serves dist. SHOTS: a folder for screenshots.
 */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { type Browser, chromium, type Page } from "playwright-core";
import { nasty, plant, type Planted } from "./plant.ts";
import { serve } from "./serve.ts";
import { story } from "./story.ts";

const server = process.env.GREENROOM ?? "http://127.0.0.1:3141";
const shots = process.env.SHOTS;
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Mode {
  name: string;
  theme: "light" | "dark";
  width: number;
  height: number;
}

/** `ONLY=story` leaves the views out, `ONLY=forms` all but one of them. */
const only = process.env.ONLY;

const modes: Mode[] = [
  { name: "light", theme: "light", width: 1280, height: 860 },
  { name: "dark", theme: "dark", width: 1280, height: 860 },
  { name: "phone-light", theme: "light", width: 390, height: 844 },
  { name: "phone-dark", theme: "dark", width: 390, height: 844 },
];

function views(planted: Planted): Record<string, string> {
  const agent = "/console/agents/assistant";
  return {
    home: "/console",
    executions: "/console/executions",
    failures: "/console/executions?status=error",
    "nothing-found": "/console/executions?user=nobody-at-all",
    waiting: `/console/executions/expense-approval/${planted.waiting}`,
    "waiting-past": `/console/executions/expense-approval/${planted.waiting}?at=3&step=classify`,
    failed: `/console/executions/flaky/${planted.failed}?step=book&failures=1`,
    completed: `/console/executions/trip/${planted.completed}`,
    held: `/console/executions/reminder/${planted.held}`,
    many: `/console/executions/bulk/${planted.many}?step=each%5B3%5D%2Fsquare`,
    inbox: "/console/inbox",
    question: `/console/inbox/${planted.question}`,
    approval: `/console/inbox/${planted.approval}`,
    workflows: "/console/workflows",
    workflow: "/console/workflows/newsletter",
    forms: "/console/workflows/forms",
    agents: "/console/agents",
    chat: `${agent}?chat=${planted.chat}&user=${encodeURIComponent(planted.user)}&raw=1`,
    about: `${agent}?tab=about`,
    history: `${agent}?tab=history`,
    memory: `${agent}?tab=memory`,
    traces: "/console/observe",
    trace: `/console/observe/traces/${planted.trace}`,
    logs: "/console/observe?tab=logs",
    connect: "/console/connect",
    compare: `/console/compare?a=trip/${planted.completed}&b=flaky/${planted.failed}`,
    "no-page": "/console/nowhere",
  };
}

/** Opens a page that reports what must not happen. */
async function open(browser: Browser, mode: Mode, faults: string[]): Promise<Page> {
  const context = await browser.newContext({ colorScheme: mode.theme, viewport: { width: mode.width, height: mode.height }, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.on("pageerror", (error) => faults.push(`${mode.name} ${page.url()}: ${error.message}`));
  page.on("console", (message) => {
    // A conversation is not stored before its first answer is there: that is no error, but browsers report it.
    const isExpected = message.text().includes("404") && message.location().url.includes("/api/memory/conversations/");
    if (message.type() === "error" && !isExpected) faults.push(`${mode.name} ${page.url()}: ${message.text()} (${message.location().url})`);
  });
  page.on("dialog", (dialog) => {
    faults.push(`${mode.name} ${page.url()}: a planted text opened a dialog`);
    void dialog.dismiss();
  });
  return page;
}

interface Finding {
  id: string;
  impact: string | null;
  nodes: { target: string[]; failureSummary: string }[];
}

async function examine(page: Page, mode: Mode, name: string, faults: string[]): Promise<void> {
  const at = `${mode.name} ${name}`;
  const sideways = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (sideways > 0) faults.push(`${at}: scrolls sideways by ${sideways} px`);
  // Evaluated by the debugger: the policy of the page does not let scripts in.
  const findings = (await page.evaluate(`${axe}; axe.run(document, { resultTypes: ["violations"] }).then((found) => found.violations)`)) as Finding[];
  for (const finding of findings) {
    faults.push(`${at}: axe ${finding.impact} ${finding.id} at ${finding.nodes.slice(0, 3).map((node) => `${node.target.join(" ")}: ${node.failureSummary.split("\n").slice(1, 2).join("").trim()}`).join(" | ")}`);
  }
  const ran = await page.evaluate(() => (window as unknown as { planted?: string }).planted ?? "");
  if (ran) faults.push(`${at}: a planted text ran (${ran})`);
  const elements = await page.evaluate(() => document.querySelectorAll("main img, main script, main iframe").length);
  if (elements > 0) faults.push(`${at}: a planted text became ${elements} elements`);
}

const base = process.env.CONSOLE ?? (await serve(server, { title: "walk", version: "0.0.0" }));
const planted = await plant(server);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const faults: string[] = [];
let walked = 0;
try {
  for (const mode of modes) {
    const page = await open(browser, mode, faults);
    for (const [name, path] of Object.entries(views(planted))) {
      if (only && only !== name) continue;
      await page.goto(base + path);
      await page.locator("main :is(h1, h2)").filter({ visible: true }).first().waitFor();
      await page.locator(".loading").waitFor({ state: "detached" });
      await examine(page, mode, name, faults);
      walked += 1;
      if (shots) await page.screenshot({ path: `${shots}/${name}-${mode.name}.png` });
    }
    await page.context().close();
  }
  const page = await open(browser, { name: "story", theme: "light", width: 1280, height: 860 }, faults);
  if (!only || only === "story") await story(page, base);
} catch (error) {
  faults.push(String(error));
} finally {
  await browser.close();
}
assert.deepEqual(faults, []);
console.log(`${walked} pages walked; of ${nasty.length} planted texts none ran`);
process.exit(0);
