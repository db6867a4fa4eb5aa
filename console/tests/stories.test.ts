/** What a person does who has never seen the console: with the keyboard and the mouse. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { clean, launch, open, send } from "./browser.ts";
import { everything, Greenroom } from "./greenroom.ts";

let server: Greenroom;
let browser: Browser;

before(async () => {
  browser = await launch();
  server = await Greenroom.start(everything);
});
after(async () => {
  await browser.close();
  await server.end();
});

const stories: Record<string, (page: Page, base: string) => Promise<void>> = {
  "starts an execution and approves it": startAndApprove,
  "sees what others answer": answerInTwoTabs,
  "goes everywhere with the keyboard": useKeyboard,
  "types ahead of a slow server": typeAhead,
  "finds executions by what is known of them": findExecutions,
  "acts on many executions at once": actOnMany,
  "replays many, once each": replayMany,
  "fills a form of every construct": fillForm,
  "suspends, resumes, and goes back in time": suspendAndResume,
  "replays with another input, and compares": replayAndCompare,
  "sees what a replay kept": seeKept,
  "chats with a tool, and approves one": chatWithTools,
  "stops an answer after a reload, and goes on": stopAndGoOn,
};

for (const [name, story] of Object.entries(stories)) {
  test(name, async () => {
    const { page, faults } = await open(browser);
    page.setDefaultTimeout(20_000);
    await story(page, server.console);
    await page.context().close();
    clean(faults);
  });
}

async function startAndApprove(page: Page, base: string): Promise<void> {
  await page.goto(`${base}/console`);
  await page.getByLabel("Settings").click();
  await page.getByLabel("Your name").fill("grace");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: /Execution, workflow/ }).fill("expense approval");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByText("waits for an answer at").waitFor();
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await page.getByRole("radio", { name: "Yes" }).check();
  await page.getByRole("dialog").getByLabel("Who approves").fill("Grace");
  await page.getByRole("dialog").getByRole("button", { name: "Answer", exact: true }).click();
  await page.locator(".heading .status.completed").waitFor();
  await page.getByText('paid').first().waitFor();
}

/** Cancels two that were chosen, then everything that the filter selects, each as one operation. */
async function actOnMany(page: Page, base: string): Promise<void> {
  for (let n = 0; n < 5; n++) await server.execute("expense-approval", { employee: `Many ${n}`, amount: 900 });
  await page.goto(`${base}/console/executions?workflow=expense-approval&status=suspended`);
  const boxes = page.getByRole("checkbox", { name: /Choose/ });
  await boxes.nth(0).check();
  await boxes.nth(1).check();
  await page.getByRole("button", { name: "Cancel 2" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("2 would be cancelled").waitFor();
  await dialog.getByLabel("Reason").fill("the budget is spent");
  await dialog.getByRole("button", { name: "Cancel 2" }).click();
  await dialog.getByText("2 cancelled").waitFor();
  await dialog.getByRole("button", { name: "Close", exact: true }).last().click();
  await page.getByText("Act on all of these").click();
  await page.getByRole("button", { name: "Cancel…" }).click();
  await dialog.getByRole("button", { name: /^Cancel \d/ }).click();
  await dialog.getByText(/^[\d]+ cancelled/).waitFor();
  await dialog.getByRole("link").click();
  await page.locator(".heading .status.completed").waitFor();
  await page.goto(`${base}/console/workflows/expense-approval`);
  await page.getByRole("img", { name: /cancelled/ }).waitFor();
}

/** Replays what has failed; what was replayed before is left out, unless it is wanted. */
async function replayMany(page: Page, base: string): Promise<void> {
  for (const note of ["one", "another"]) await server.ended("flaky", await server.execute("flaky", { note }));
  await page.goto(`${base}/console/executions?workflow=flaky&status=error`);
  const dialog = page.getByRole("dialog");
  const open = async (): Promise<void> => {
    await page.getByText("Act on all of these").click();
    await page.getByRole("button", { name: "Replay…" }).click();
  };
  await open();
  await dialog.getByRole("button", { name: /^Replay \d/ }).click();
  await dialog.getByText(/^[\d]+ replayed/).waitFor();
  await dialog.getByRole("button", { name: "Close", exact: true }).last().click();
  await open();
  await dialog.getByText(/replayed before and would be left out/).waitFor();
  const all = await dialog.getByRole("button", { name: /^Replay \d/ }).textContent();
  await dialog.getByRole("checkbox", { name: /Also those/ }).check();
  await dialog.getByText(/replayed before and would be left out/).waitFor({ state: "detached" });
  assert.notEqual(await dialog.getByRole("button", { name: /^Replay \d/ }).textContent(), all);
  await dialog.getByRole("button", { name: "Close", exact: true }).last().click();
}

/** A question that is answered in one tab folds away in the other one, which says who it was. */
async function answerInTwoTabs(page: Page, base: string): Promise<void> {
  await server.execute("expense-approval", { employee: "Two tabs", amount: 900 });
  const other = await page.context().newPage();
  for (const each of [page, other]) {
    await each.goto(`${base}/console/inbox`);
    await each.getByRole("link", { name: /Two tabs/ }).click();
    await each.getByRole("radio", { name: "Yes" }).check();
  }
  await other.getByLabel("Settings").click();
  await other.getByLabel("Your name").fill("lea");
  await other.keyboard.press("Escape");
  await other.getByRole("button", { name: "Answer", exact: true }).click();
  await other.getByText("answered by lea").waitFor();
  await page.getByText("answered by lea").waitFor();
  await page.getByRole("button", { name: "Answer", exact: true }).waitFor({ state: "detached" });
  await other.close();
}

/** No mouse: the list, an execution, its events, the inbox, the help. */
async function useKeyboard(page: Page, base: string): Promise<void> {
  const first = await server.execute("refund", { order: "A-1", amount: 1 });
  const second = await server.execute("refund", { order: "A-2", amount: 2 });
  await page.goto(`${base}/console`);
  await page.locator(".health .status").waitFor();
  await page.keyboard.type("ge");
  await page.locator(`[role=table] a[href$="${second}"]`).waitFor();
  await page.keyboard.type("jj");
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/refund/${first}`);
  await page.locator(".heading .status.completed").waitFor();
  await page.keyboard.press("ArrowLeft");
  await page.getByText("as it was at event").waitFor();
  await page.keyboard.press("ArrowRight");
  await page.getByText("the newest").waitFor();
  await page.keyboard.type("?");
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.keyboard.type("gi");
  await page.waitForURL("**/console/inbox");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: /Execution, workflow/ }).fill(second);
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/refund/${second}`);
  // Tab comes to the content first, and what has the focus is seen.
  await page.reload();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement?.textContent?.trim()), "To the content");
}

/** Enter is not lost while names and ids are still being read. */
async function typeAhead(page: Page, base: string): Promise<void> {
  const id = `typed-ahead-${Date.now()}`;
  await server.execute("refund", { order: "A-3", amount: 3 }, { executionId: id });
  // The newest are listed anyway: this one is found by its id.
  await Promise.all(Array.from({ length: 60 }, (_, index) => server.execute("refund", { order: "A-4", amount: index + 1 })));
  await page.route(/\/(workflows|agents)(\/executions)?(\?.*)?$/, async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 500));
    await route.continue();
  });
  await page.goto(`${base}/console/connect`);
  await page.getByRole("heading", { name: "Connect", level: 1 }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: /Execution, workflow/ }).fill("expense approval");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/workflows/expense-approval");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: /Execution, workflow/ }).fill(id.slice(0, -1));
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/refund/${id}`);
  await page.unrouteAll({ behavior: "ignoreErrors" });
}

async function findExecutions(page: Page, base: string): Promise<void> {
  const id = `found-${Date.now()}`;
  await server.execute("refund", { order: "A-5", amount: 5 }, { executionId: id });
  await page.goto(`${base}/console/executions`);
  await page.getByLabel("Id begins with").fill("found-");
  await page.keyboard.press("Enter");
  await page.waitForURL(/[?&]id=found-/);
  await page.locator(`[role=table] a[href$="${id}"]`).waitFor();
  assert.equal(await page.locator('[role=table] a[href*="/refund/"]').count(), 1);
  await page.getByText("More", { exact: true }).click();
  await page.getByLabel("Error has the text").fill("no failure says this");
  await page.keyboard.press("Enter");
  await page.getByText("No execution fits").waitFor();
  await page.reload();
  assert.equal(await page.getByLabel("Error has the text").inputValue(), "no failure says this");
}

async function suspendAndResume(page: Page, base: string): Promise<void> {
  await page.goto(`${base}/console/workflows/reminder`);
  await page.getByLabel("text").first().fill("tea");
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByText("Sleeps at").waitFor();
  await page.getByRole("button", { name: "Suspend" }).click();
  await page.getByLabel("Reason").fill("the kettle is away");
  await page.getByRole("dialog").getByRole("button", { name: "Suspend" }).click();
  await page.getByText("Suspended by hand").waitFor();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByText("Sleeps at").waitFor();
  await goBack(page);
}

/** The slider shows the execution as it was, the address has it, and a reload shows the same. */
async function goBack(page: Page): Promise<void> {
  await page.getByRole("button", { name: "One event back" }).click();
  await page.getByRole("button", { name: "One event back" }).click();
  await page.getByText("as it was at event 2 of 4").waitFor();
  assert.match(page.url(), /[?&]at=2/);
  await page.reload();
  await page.getByText("as it was at event 2 of 4").waitFor();
  await page.getByRole("button", { name: "Newest" }).click();
  assert.doesNotMatch(page.url(), /at=/);
}

async function replayAndCompare(page: Page, base: string): Promise<void> {
  const id = await server.execute("refund", { order: "A-1", amount: 20 });
  await page.goto(`${base}/console/executions/refund/${id}`);
  await page.locator(".heading .status.completed").waitFor();
  await page.getByRole("button", { name: "Replay" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("with another input").check();
  await dialog.getByLabel("amount").fill("30");
  await dialog.getByRole("button", { name: "Replay" }).click();
  await page.getByRole("link", { name: "Compare with its original" }).click();
  await page.getByRole("heading", { name: "Compare" }).waitFor();
  await page.getByText("1 of 1 step differ").waitFor();
  assert.equal(await page.getByText("differs").count(), 2);
  const [a, b] = ["a", "b"].map((side) => new URL(page.url()).searchParams.get(side));
  assert.ok(a === `refund/${id}` && b !== a, page.url());
}

async function seeKept(page: Page, base: string): Promise<void> {
  const id = await server.execute("expense-approval", { employee: "Ada", amount: 900 });
  const replay = await page.request.post(`${base}/workflows/expense-approval/executions/${id}/replay`, { data: { stepId: "manager" }, headers: { prefer: "respond-async" } });
  const other = replay.headers()["x-execution-id"] ?? "";
  await page.goto(`${base}/console/executions/expense-approval/${other}?step=classify`);
  await page.getByText("It did not run again").waitFor();
  await page.locator(".selection").getByRole("link").click();
  await page.waitForURL(`**/expense-approval/${id}?step=classify`);
  await page.locator(".selection").getByText("Output").waitFor();
}

async function chatWithTools(page: Page, base: string): Promise<void> {
  await page.goto(`${base}/console/agents/assistant`);
  await send(page, "REFUND small");
  await page.getByText("The tool refund says").waitFor();
  await page.locator(".message details.tool summary").click();
  await page.locator(".message details.tool").getByText("refunded").first().waitFor();
  await send(page, "REFUND large");
  await page.getByText("waits for an approval").waitFor();
  await page.reload();
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByText("The tool refund says").nth(1).waitFor();
}

async function stopAndGoOn(page: Page, base: string): Promise<void> {
  await page.goto(`${base}/console/agents/assistant`);
  await send(page, "LONG");
  await page.getByText("word 3 of a long answer").waitFor();
  const stop = page.getByRole("button", { name: "Stop" });
  const place = await stop.boundingBox();
  await page.reload();
  await page.getByText("word 12 of a long answer").waitFor();
  await page.locator(".message.user", { hasText: "LONG" }).waitFor();
  // A button that new lines of the text move away is missed by those who press it.
  assert.deepEqual(await stop.boundingBox(), place);
  await stop.click();
  await page.getByText("Stopped.").waitFor();
  await page.getByRole("button", { name: "Send" }).waitFor();
  await page.reload();
  await page.getByText("word 6 of a long answer").waitFor();
  await page.locator(".message.user", { hasText: "LONG" }).waitFor();
  await page.getByText("Stopped.").waitFor();
  await send(page, "REFUND small");
  await page.getByText("The tool refund says").waitFor();
  assert.equal(await page.locator(".message.user").count(), 2);
}

/** A form for every construct of a schema gives the value that was meant. */
async function fillForm(page: Page, base: string): Promise<void> {
  await page.goto(`${base}/console/workflows/forms`);
  const form = page.locator(".runform");
  await form.getByLabel("Full name").fill("Ada");
  await form.getByLabel("amount").fill("12,5");
  await form.getByRole("group", { name: "urgent" }).getByLabel("No").check();
  await form.getByLabel("travel").check();
  await form.getByLabel("colour").selectOption("green");
  await form.getByLabel("day").fill("2026-02-03");
  await form.getByLabel("city").fill("Turin");
  await form.getByRole("group", { name: "lines" }).getByRole("button", { name: "Add" }).click();
  await form.getByLabel("text").fill("train");
  await form.getByLabel("Kind", { exact: true }).selectOption("Account");
  await form.getByLabel("iban").fill("IT60");
  await form.getByLabel("Fast").check();
  await form.getByLabel("hour").fill("10:30");
  const extras = form.getByRole("group", { name: "extras" });
  for (const text of ["first", "second"]) {
    await extras.getByRole("button", { name: "Add" }).click();
    await extras.getByRole("textbox").last().fill(JSON.stringify(text));
  }
  await extras.getByRole("button", { name: "Remove 1 of extras" }).click();
  assert.equal(await extras.getByRole("textbox").inputValue(), '"second"');
  // What is no JSON yet is not left out in silence.
  await form.getByLabel("anything").fill("[1, null]");
  await form.getByLabel("anything").fill("[1, null");
  await form.getByRole("button", { name: "Start" }).click();
  await form.locator(".fault", { hasText: "is missing" }).waitFor();
  await form.locator(".fault", { hasText: "is no JSON" }).waitFor();
  // the first field with a fault
  await form.locator("input[aria-invalid=true]:focus").waitFor();
  await form.getByLabel("anything").fill("[1, null]");
  // letter by letter
  await form.getByLabel("price").pressSequentially("30.05");
  assert.equal(await form.getByLabel("price").inputValue(), "30.05");
  await form.getByRole("button", { name: "Start" }).click();
  await page.locator(".heading .status.completed").waitFor();
  const [, , , workflow, id] = new URL(page.url()).pathname.split("/");
  const answer = await page.request.get(`${base}/workflows/${workflow}/executions/${id}/state`);
  const { data } = (await answer.json()) as { data: { input: { hour: string } } };
  const { hour, ...input } = data.input;
  assert.match(hour, /^10:30:00(Z|[+-]\d\d:\d\d)$/);
  assert.deepEqual(input, {
    name: "Ada",
    amount: 12.5,
    urgent: false,
    kind: "travel",
    colour: "green",
    day: "2026-02-03",
    address: { city: "Turin" },
    lines: [{ text: "train", price: 30.05 }],
    payment: { iban: "IT60" },
    speed: "fast",
    anything: [1, null],
    extras: ["second"],
  });
}
