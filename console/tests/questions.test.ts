/** Questions that look alike, and those that who asked may not answer. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { clean, examine, launch, open, settle } from "./browser.ts";
import { eventually, everything, Greenroom } from "./greenroom.ts";

const config = `[workflows.four-eyes]
name = "Four eyes"
purpose = "Asks another one"
input_schema = { type = "object" }

[[workflows.four-eyes.steps]]
id = "check"
suspend = { reason = "Is this right?", to = ["!self"], deadline = "1h" }
resume_schema = { type = "object", required = ["ok"], properties = { ok = { type = "boolean" } } }
map = { ok = "resume.ok" }
`;

let server: Greenroom;
let browser: Browser;
let asks: { askId: string }[];

before(async () => {
  browser = await launch();
  server = await Greenroom.start(everything, { config });
  for (const user of ["ada", "bob"]) await server.execute("four-eyes", {}, { userId: user, executionId: `of-${user}` });
  asks = await eventually("two questions", async () => {
    const { asks } = await server.call<{ asks: { askId: string; userId: string }[] }>("GET", "/inbox");
    return asks.length === 2 ? asks.sort((a, b) => a.userId.localeCompare(b.userId)) : undefined;
  });
});
after(async () => {
  await browser.close();
  await server.end();
});

test("questions with the same words differ by execution and user", async () => {
  const { page, faults } = await open(browser);
  await page.goto(`${server.console}/console/inbox`);
  for (const user of ["ada", "bob"]) await page.locator(".ask", { hasText: "Is this right?" }).filter({ hasText: `Four eyes / check · of-${user} · for ${user}` }).waitFor();
  clean(faults);
});

test("j goes to a question, and Enter to its answer", async () => {
  const { page, faults } = await open(browser);
  await page.goto(`${server.console}/console/inbox`);
  await page.locator(".ask").first().waitFor();
  await page.keyboard.press("j");
  await page.locator(".ask[aria-current]").waitFor();
  await page.locator(".answer").waitFor();
  await page.keyboard.press("Enter");
  await page.locator(".answer input:focus").waitFor();
  clean(faults);
});

test("of many questions the first are drawn, and more on demand", async () => {
  const { page, faults } = await open(browser);
  const { asks: [first] } = await server.call<{ asks: object[] }>("GET", "/inbox");
  await page.route(/\/inbox\?/, (route) => {
    const from = Number(new URL(route.request().url()).searchParams.get("cursor") ?? 0);
    const page = Array.from({ length: Math.min(200, 450 - from) }, (_, index) => ({ ...first, askId: `ask-${from + index}` }));
    return route.fulfill({ json: { success: true, data: { asks: page, nextCursor: from + 200 < 450 ? String(from + 200) : null, incomplete: false } } });
  });
  await page.goto(`${server.console}/console/inbox`);
  await page.getByText("450 questions. Choose one").waitFor();
  const drawn = (): Promise<number> => page.locator(".ask").count();
  assert.equal(await drawn(), 100);
  faults.push(...(await examine(page)));
  await page.getByRole("button", { name: "350 more questions" }).click();
  await page.getByRole("button", { name: "150 more questions" }).waitFor();
  assert.equal(await drawn(), 300);
  clean(faults);
});

test("who started it is told that another person answers, and others can", async () => {
  const { page, faults } = await open(browser);
  await page.addInitScript(() => localStorage.setItem("greenroom.actingAs", JSON.stringify("ada")));
  await page.goto(`${server.console}/console/inbox/${asks[0]?.askId}`);
  await page.getByText("You started it: another person has to answer.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Answer" }).count(), 0);
  faults.push(...(await examine(page)));
  await page.goto(`${server.console}/console/executions/four-eyes/of-ada`);
  await settle(page);
  assert.ok(await page.getByRole("button", { name: "Answer" }).isDisabled());

  await page.goto(`${server.console}/console/inbox/${asks[1]?.askId}`);
  await page.getByRole("button", { name: "Answer" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Copy as curl", exact: true }).count(), 1);
  await page.getByRole("radio", { name: "Yes" }).check();
  await page.getByRole("button", { name: "Answer" }).click();
  await page.getByText("answered by ada").waitFor();
  clean(faults);
});

test("whole numbers beyond those of browsers are shown, and sent back as they are", async () => {
  const { page, faults } = await open(browser);
  const text = async (path: string, init?: RequestInit): Promise<string> => (await fetch(server.base + path, init)).text();
  const body = '{"input":{"account":9007199254740993,"amount":5},"options":{"executionId":"long"}}';
  await text("/workflows/four-eyes/execute", { method: "POST", body, headers: { "content-type": "application/json", prefer: "respond-async" } });
  await page.goto(`${server.console}/console/executions/four-eyes/long`);
  await page.locator(".json", { hasText: "9007199254740993" }).waitFor();
  await page.getByRole("button", { name: "Replay as another" }).click();
  await page.getByLabel("With another input").check();
  const json = page.getByLabel("Input as JSON");
  await json.fill((await json.inputValue()).replace(": 5", ": 6"));
  await page.getByRole("button", { name: "Replay", exact: true }).click();
  await page.waitForURL((url) => !url.pathname.endsWith("/long"));
  await page.locator(".json", { hasText: "9007199254740993" }).waitFor();
  const replay = new URL(page.url()).pathname.split("/").at(-1);
  assert.match(await text(`/workflows/four-eyes/executions/${replay}/state`), /"input":\{"account":9007199254740993,"amount":6\}/);

  // An approval that changes another argument.
  const { asks: [first] } = await server.call<{ asks: object[] }>("GET", "/inbox");
  const ask = { ...first, askId: "call", kind: "approval", schema: { type: "object", properties: { input: {} } }, payload: "PAYLOAD" };
  const answer = JSON.stringify({ success: true, data: ask }).replace('"PAYLOAD"', '{"account":9007199254740993,"amount":5}');
  let sent = "";
  await page.route(/\/inbox\/call$/, (route) => (route.request().resourceType() === "document" ? route.continue() : route.fulfill({ contentType: "application/json", body: answer })));
  await page.route(/\/inbox\/call\/answer$/, (route) => {
    sent = route.request().postData() ?? "";
    return route.fulfill({ json: { success: true, data: null } });
  });
  await page.goto(`${server.console}/console/inbox/call`);
  await page.getByText("change the arguments before the call").click();
  const args = page.getByLabel("Arguments as JSON");
  await args.fill((await args.inputValue()).replace(": 5", ": 6"));
  await page.getByRole("button", { name: "Approve as changed" }).click();
  await eventually("an answer", () => Promise.resolve(sent || undefined));
  assert.match(sent, /"approved":true,"input":\{"account":9007199254740993,"amount":6\}/);
  clean(faults);
});
