/** The page of a workflow: its graph and what can be saved of it, its schemas, and forms of schemas that are not plain. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { clean, desk, examine, launch, modes, open, settle, shoot } from "./browser.ts";
import { everything, Greenroom } from "./greenroom.ts";

const config = `[workflows.nested]
name = "Nested"
purpose = "Has a schema with forms in forms"
input_schema = "nested.json"

[[workflows.nested.steps]]
id = "keep"
map = "input"
`;

let server: Greenroom;
let browser: Browser;

before(async () => {
  browser = await launch();
  server = await Greenroom.start({ ...everything, "nested.json": fileURLToPath(new URL("nested.json", import.meta.url)) }, { config });
});
after(async () => {
  await browser.close();
  await server.end();
});

test("forms in forms give the value that was meant", async () => {
  const { page, faults } = await open(browser);
  await page.goto(`${server.console}/console/workflows/nested`);
  const form = page.locator(".runform");
  await form.getByRole("group", { name: "boss" }).getByLabel("Name").fill("Grace");
  const payment = form.getByRole("group", { name: "payment" });
  await payment.getByLabel("Kind", { exact: true }).selectOption("Account");
  await form.getByRole("group", { name: "parts" }).getByRole("button", { name: "Add" }).click();
  await form.getByRole("group", { name: "sizes" }).getByLabel("m", { exact: true }).check();
  await form.getByLabel("start").fill("2026-02-03T10:20");
  await form.getByLabel("day").fill("2026-02-03");
  await form.getByRole("button", { name: "Start" }).click();
  await payment.getByText("is missing").waitFor();
  await payment.getByLabel("iban").fill("IT60 1");

  // What was chosen stays in both views, and JSON is checked as it is typed.
  await form.getByRole("button", { name: "JSON" }).click();
  const json = form.getByLabel("Input as JSON");
  const whole = await json.inputValue();
  await form.getByText("JSON that fits the schema").waitFor();
  await json.fill(whole.replace("IT60 1", "IT"));
  await form.getByText("needs at least 4 letters").waitFor();
  await json.fill(whole.slice(1));
  await form.locator(".fault").first().waitFor();
  assert.ok(await form.getByRole("button", { name: "Form" }).isDisabled());
  await json.fill(whole);
  await form.getByRole("button", { name: "Form" }).click();
  assert.equal(await payment.getByLabel("iban").inputValue(), "IT60 1");

  faults.push(...(await examine(page)));
  await shoot(page, "nested-light");
  await form.getByRole("button", { name: "Start" }).click();
  await page.locator(".heading .status.completed").waitFor();
  const state = await server.call<{ input: { start: string } }>("GET", `/workflows/nested/executions/${new URL(page.url()).pathname.split("/").at(-1)}/state`);
  assert.deepEqual(state.input, {
    boss: { name: "Grace" },
    payment: { by: "account", iban: "IT60 1" },
    parts: [{ sizes: ["m"] }],
    start: new Date("2026-02-03T10:20").toISOString(),
    day: "2026-02-03",
  });
  clean(faults);
});

test("schemas are tables, also on a phone", async () => {
  for (const mode of [desk, modes[2] ?? desk]) {
    const { page, faults } = await open(browser, mode);
    await page.goto(`${server.console}/console/workflows/nested`);
    await settle(page);
    const table = page.getByRole("group", { name: "Input", exact: true });
    await table.getByRole("row", { name: /payment\.iban string yes only in Account; at least 4 letters/ }).waitFor();
    await table.getByRole("row", { name: /boss\.name string yes Name/ }).waitFor();
    await table.scrollIntoViewIfNeeded();
    await shoot(page, `nested-table-${mode.name}`);
    await page.context().close();
    clean(faults);
  }
});

test("the graph is dragged, zoomed and saved", async () => {
  const { page, faults } = await open(browser, { ...desk, height: 520 });
  await page.goto(`${server.console}/console/workflows/newsletter`);
  const port = page.getByRole("group", { name: "Graph of Newsletter" });
  await port.getByRole("button", { name: /^draft/ }).waitFor();
  const box = await port.boundingBox();
  assert.ok(box);
  const middle: [number, number] = [box.x + box.width / 2, box.y + box.height / 2];
  const scale = page.getByRole("button", { name: /go to full size/ });
  const before = await scale.textContent();
  await page.mouse.move(...middle);
  await page.keyboard.down("Control");
  for (let turn = 0; turn < 3; turn++) await page.mouse.wheel(0, -100);
  await page.keyboard.up("Control");
  await page.waitForFunction((old) => [...document.querySelectorAll(".zoom button")].every((button) => button.textContent !== old), before);
  await page.mouse.down();
  await page.mouse.move(middle[0], middle[1] - 80, { steps: 4 });
  await page.mouse.up();
  assert.ok((await port.evaluate((element) => element.scrollTop)) > 40);
  assert.doesNotMatch(page.url(), /step=/, "the end of a way is no click");
  await port.getByRole("button", { name: /^draft/ }).click();
  await page.waitForURL(/step=draft/);

  const svg = await saved(page, "SVG");
  assert.match(svg.toString(), /^<svg [\s\S]*Newsletter[\s\S]*draft[\s\S]*<\/svg>\n$/);
  const png = await saved(page, "PNG");
  assert.deepEqual([...png.subarray(1, 4)], [...Buffer.from("PNG")]);
  clean(faults);
});

async function saved(page: Page, name: string): Promise<Buffer> {
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name, exact: true }).click()]);
  return readFile(await download.path());
}
