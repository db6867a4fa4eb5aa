// Pages of links to asks in a real browser: they have no scripts, so what the browser does counts.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { BASE, data, eventually } from "../support.mjs";
import { launch } from "./browser.mjs";

const AGENT = "cashier";

let browser;

before(async () => (browser = await launch()));
after(() => browser?.close());

async function post(path, body) {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${BASE}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  assert.equal(response.status, 200, await response.clone().text());
  return (await response.json()).data;
}

/** Has the agent ask for a refund; opens the link to what it asks. */
async function open(t, options) {
  const { generationId, asks } = await post(`/agents/${AGENT}/text`, { input: "REFUND" });
  const { url } = await post(`/inbox/${asks[0].askId}/link`, { to: "user:ann" });
  const page = await browser.newPage(options);
  t.after(() => page.close());
  page.setDefaultTimeout(20_000);
  await page.goto(`${BASE}${new URL(url).pathname}`);
  const ended = async () => {
    const path = `/agents/${AGENT}/generations/${generationId}`;
    const { steps } = await eventually("the end", () => data(path), ({ status }) => status === "completed");
    return steps[0].toolResults[0];
  };
  const asked = () => data(`/inbox/${asks[0].askId}`);
  return { page, ended, asked };
}

test("what is typed is kept until it is right, and then called", async (t) => {
  const { page, ended, asked } = await open(t);
  const amount = page.getByLabel("amount");
  assert.equal(await amount.inputValue(), "500");
  await amount.fill("9000");
  await page.getByLabel("Reason").fill("as agreed");
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByText("9000 is greater than the maximum of 1000").waitFor();
  assert.equal(await amount.inputValue(), "9000");
  assert.equal(await page.getByLabel("Reason").inputValue(), "as agreed");
  assert.equal(await amount.evaluate((control) => control === document.activeElement), true);
  await amount.fill("450");
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByText("Answer recorded").waitFor();
  assert.deepEqual((await ended()).output, { refunded: 450 });
  const { data: answer } = await asked();
  assert.deepEqual(answer, { approved: true, reason: "as agreed", input: { amount: 450 } });
  await page.goto(page.url());
  await page.getByText("Already answered").waitFor();
});

test("a refusal needs no valid arguments, and the Enter key decides nothing", async (t) => {
  const { page, ended, asked } = await open(t);
  const sent = [];
  page.on("request", (request) => sent.push(request.method()));
  await page.getByLabel("amount").fill("");
  await page.getByLabel("amount").press("Enter");
  await page.getByRole("button", { name: "Approve" }).click();
  // the browser asks for the value
  assert.equal(await page.getByLabel("amount").evaluate((it) => it.matches(":focus:invalid")), true);
  assert.deepEqual(sent, []);
  await page.getByLabel("amount").fill("450");
  await page.getByLabel("amount").press("Enter");
  assert.deepEqual([sent, (await asked()).state], [[], "open"]);
  await page.getByLabel("amount").fill("");
  await page.getByRole("button", { name: "Refuse" }).click();
  await page.getByText("Answer recorded").waitFor();
  assert.equal((await ended()).denied, "refused by a person");
});

test("on a phone everything fits and is large enough to touch", async (t) => {
  const phone = { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true };
  for (const colorScheme of ["light", "dark"]) {
    const { page } = await open(t, { ...phone, colorScheme });
    const shown = await page.evaluate(() => ({
      width: document.documentElement.scrollWidth,
      heights: [...document.querySelectorAll("input, textarea, button:not([hidden])")].map(
        (control) => control.getBoundingClientRect().height,
      ),
    }));
    assert.equal(shown.width, 390);
    assert.equal(shown.heights.length, 4);
    assert.ok(shown.heights.every((height) => height >= 44), `${shown.heights}`);
  }
});
