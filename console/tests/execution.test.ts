/** The page of an execution: what it belongs to, how it is found, what it does now, and what of it is cut off. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { clean, examine, launch, open, settle, shoot } from "./browser.ts";
import { eventually, everything, Greenroom } from "./greenroom.ts";

const config = `[limits]
trace_spans_max = 100

[workflows.parent]
name = "Parent"
purpose = "Starts an execution for each item"
input_schema = { type = "object", required = ["count"], properties = { count = { type = "integer" } } }

[[workflows.parent.steps]]
id = "each"
type = "andForEach"
items = "range(input.count)"
concurrency = 10
block = "one"

[[workflows.parent.blocks.one]]
id = "pay"
type = "andWorkflow"
workflow = "refund"
input = { order = "'A-' ~ item", amount = 3 }
`;

let server: Greenroom;
let browser: Browser;

before(async () => {
  browser = await launch();
  server = await Greenroom.start(everything, { config });
});
after(async () => {
  await browser.close();
  await server.end();
});

test("an execution names its newest replays, and a replay its original", async () => {
  const id = await server.execute("expense-approval", { employee: "Ada", amount: 900 }, { executionId: "original" });
  await server.call("POST", `/workflows/expense-approval/executions/${id}/cancel`, {});
  const replays: string[] = [];
  for (let n = 0; n < 4; n++) {
    const { executionId } = await server.call<{ executionId: string }>("POST", `/workflows/expense-approval/executions/${id}/replay`, { stepId: "classify" }, { prefer: "respond-async" });
    replays.unshift(executionId);
  }
  const { page, faults } = await open(browser);
  await page.goto(`${server.console}/console/executions/expense-approval/${id}`);
  const line = page.locator(".inline-parts", { hasText: "Replayed as" });
  await line.waitFor();
  const links = await line.locator(".id a").evaluateAll((all) => all.map((each) => each.getAttribute("title")));
  assert.deepEqual(links, replays.slice(0, 3));
  faults.push(...(await examine(page)));
  await shoot(page, "replayed-light");
  await line.getByRole("link", { name: "and older ones" }).click();
  await page.getByText("4, newest first").waitFor();
  await page.goto(`${server.console}/console/executions/expense-approval/${replays[0]}`);
  await page.getByText("Replay of").waitFor();
  clean(faults);
});

test("a child leads to what started it, and a cut trace says so and is read rarely", async () => {
  const id = await server.execute("parent", { count: 200 }, { executionId: "many-children" });
  await server.ended("parent", id);
  const { page, faults } = await open(browser);
  let states = 0;
  let traces = 0;
  page.on("request", (request) => {
    if (request.url().includes("/state?")) states += 1;
    if (request.url().includes("/observability/traces/")) traces += 1;
  });
  await page.goto(`${server.console}/console/executions/parent/${id}`);
  await page.getByText(/^Its trace is cut after \d+ spans/).waitFor();
  // what its steps started is known without the trace
  await page.locator(".waterfall .line.call", { hasText: "workflow refund" }).getByRole("link", { name: "open" }).first().waitFor();
  await page.getByText("200 executions").waitFor();
  assert.ok(traces <= 2, `${traces} traces`);
  assert.ok(states <= 4, `${states} states`);
  await shoot(page, "cut-trace-light");

  const child = await eventually("a child", async () => (await server.call<{ executions: { executionId: string }[] }>("GET", `/workflows/executions?parentExecutionId=${id}&limit=1`)).executions[0]);
  await page.goto(`${server.console}/console/executions/refund/${child.executionId}`);
  const line = page.locator(".inline-parts", { hasText: "Started by" });
  await line.getByText("of Parent").waitFor();
  await line.getByRole("link", { name: "many-children" }).click();
  await page.waitForURL("**/executions/parent/many-children");
  clean(faults);
});

test("an id alone finds its execution, and says where there is none", async () => {
  await server.execute("refund", { order: "A-1", amount: 1 }, { executionId: "found-1" });
  await server.execute("refund", { order: "A-1", amount: 1 }, { executionId: "found-1-again" });
  const { page, faults } = await open(browser);
  await page.goto(`${server.console}/console/executions/found-1?step=pay`);
  await page.waitForURL("**/executions/refund/found-1?step=pay");
  await page.goto(`${server.console}/console/executions/found`);
  await page.getByText("The ids of these begin with it").waitFor();
  faults.push(...(await examine(page)));
  await page.getByRole("link", { name: "found-1-again" }).click();
  await page.waitForURL("**/executions/refund/found-1-again");
  await page.goto(`${server.console}/console/executions/nowhere-at-all`);
  await page.getByRole("heading", { name: "There is no execution nowhere-at-all" }).waitFor();
  await settle(page);
  clean(faults);
});

test("the page of an operation is a sentence with its counts, and names what failed", async () => {
  const id = await server.execute("reminder", { text: "tea" }, { executionId: "to-cancel" });
  const body = { action: "cancel", reason: "No longer wanted", executionIds: [id, "nowhere-1"] };
  const { executionId } = await server.call<{ executionId: string }>("POST", "/workflows/executions/bulk", body);
  const { page, faults } = await open(browser);
  await page.goto(`${server.console}/console/executions/greenroom.bulk/${executionId}`);
  const whole = page.getByRole("region", { name: "Execution" });
  await whole.getByText("Cancels 2 executions that were named.").waitFor();
  await whole.getByText("1 cancelled, 1 failed").waitFor();
  await whole.locator(".facts").getByText("No longer wanted").waitFor();
  faults.push(...(await examine(page)));
  await shoot(page, "operation-light");
  await whole.locator(".faults").getByRole("link", { name: "nowhere-1" }).click();
  await page.getByRole("heading", { name: "There is no execution nowhere-1" }).waitFor();
  clean(faults);
});

test("what sleeps says until when, and the past offers no actions", async () => {
  const id = await server.execute("reminder", { text: "tea" });
  const { page, faults } = await open(browser);
  await page.goto(`${server.console}/console/executions/reminder/${id}`);
  await page.locator(".heading .status.sleeping", { hasText: /^sleeping until / }).waitFor();
  await page.goto(`${server.console}/console/executions/reminder/${id}?at=1`);
  await page.getByText("This shows the past: go to the newest event to act.").waitFor();
  for (const name of ["Suspend", "Cancel", "Replay as another"]) assert.ok(await page.getByRole("button", { name, exact: true }).isDisabled(), name);
  faults.push(...(await examine(page)));
  await page.getByRole("button", { name: "Newest" }).click();
  await page.locator(".heading .status.sleeping").waitFor();
  assert.equal(await page.getByRole("button", { name: "Suspend" }).isDisabled(), false);
  clean(faults);
});
