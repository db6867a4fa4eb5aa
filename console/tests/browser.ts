/** The browser, and what no page may do: raise errors, call other places, scroll sideways, run what callers wrote. */

import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";

const shots = fileURLToPath(new URL("../../target/console/", import.meta.url));
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export interface Mode {
  name: string;
  theme: "light" | "dark";
  width: number;
  height: number;
}

export const desk: Mode = { name: "light", theme: "light", width: 1280, height: 860 };
export const modes: Mode[] = [
  desk,
  { name: "dark", theme: "dark", width: 1280, height: 860 },
  { name: "phone-light", theme: "light", width: 390, height: 844 },
  { name: "phone-dark", theme: "dark", width: 390, height: 844 },
];

export function launch(): Promise<Browser> {
  // Other names of this machine are other places for a page.
  const args = ["--no-sandbox", "--host-resolver-rules=MAP *.example 127.0.0.1"];
  return chromium.launch({ executablePath: process.env.GREENROOM_BROWSER ?? "/usr/bin/chromium", args });
}

export interface Watched {
  page: Page;
  /** What must not happen and did. */
  faults: string[];
}

/** Opens a page that reports what must not happen. `expected`: errors that belong to the story. */
export async function open(browser: Browser, mode: Mode = desk, expected: (text: string) => boolean = () => false): Promise<Watched> {
  const context = await browser.newContext({ colorScheme: mode.theme, viewport: { width: mode.width, height: mode.height }, reducedMotion: "reduce" });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(`${page.url()}: ${error.message}`));
  page.on("console", (message) => {
    const text = `${message.text()} (${message.location().url})`;
    // A conversation is not stored before its first answer is there: that is no error, but browsers report it.
    const isEarly = text.includes("404") && text.includes("/api/memory/conversations/");
    if (message.type() === "error" && !isEarly && !expected(text)) faults.push(`${page.url()}: ${text}`);
  });
  page.on("dialog", (dialog) => {
    faults.push(`${page.url()}: a planted text opened a dialog`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!/^(http:\/\/127\.0\.0\.1:|data:|blob:)/.test(request.url())) faults.push(`${page.url()}: asks ${request.url()}`);
  });
  return { page, faults };
}

interface Finding {
  id: string;
  impact: string | null;
  nodes: { target: string[]; failureSummary: string }[];
}

/** Returns what is wrong with the page as it is now. */
export async function examine(page: Page): Promise<string[]> {
  const faults: string[] = [];
  const sideways = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (sideways > 0) faults.push(`scrolls sideways by ${sideways} px`);
  // Evaluated by the debugger: the policy of the page does not let scripts in.
  const findings = (await page.evaluate(`${axe}; axe.run(document, { resultTypes: ["violations"] }).then((found) => found.violations)`)) as Finding[];
  for (const finding of findings) {
    const places = finding.nodes.slice(0, 3).map((node) => `${node.target.join(" ")}: ${node.failureSummary.split("\n").slice(1, 2).join("").trim()}`);
    faults.push(`axe ${finding.impact} ${finding.id} at ${places.join(" | ")}`);
  }
  const ran = await page.evaluate(() => (window as unknown as { planted?: string }).planted ?? "");
  if (ran) faults.push(`a planted text ran (${ran})`);
  const elements = await page.evaluate(() => document.querySelectorAll("main :is(img, script, iframe), main a[href^='javascript:']").length);
  if (elements > 0) faults.push(`a planted text became ${elements} elements`);
  return faults;
}

/** Waits until a view has what it shows. */
export async function settle(page: Page): Promise<void> {
  await page.locator("main :is(h1, h2)").filter({ visible: true }).first().waitFor();
  await page.waitForFunction(() => document.querySelector(".loading") === null);
}

/** Sends a message to an agent. While one is being answered, the next one is not taken. */
export async function send(page: Page, text: string): Promise<void> {
  await page.getByLabel("Message").fill(text);
  await page.locator("button:enabled", { hasText: /^Send$/ }).waitFor();
  await page.getByLabel("Message").press("Enter");
}

/** Keeps a picture of the page, to be looked at. */
export async function shoot(page: Page, name: string): Promise<void> {
  await mkdir(shots, { recursive: true });
  await page.screenshot({ path: `${shots}${name}.png` });
}

export function clean(faults: string[]): void {
  assert.deepEqual(faults, []);
}
