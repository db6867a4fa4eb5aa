/** What a console for readers offers, and what happens with tokens that are wrong or allow less. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { clean, examine, launch, open, settle, shoot } from "./browser.ts";
import { everything, Greenroom } from "./greenroom.ts";
import { secret, tokenOf } from "./token.ts";

let browser: Browser;

before(async () => {
  browser = await launch();
});
after(() => browser.close());

test("a console for readers says why it offers no actions", async () => {
  const server = await Greenroom.start(everything, { config: '[console]\nread_only = true\ntitle = "production"\naccent = "#aa3300"\n' });
  try {
    const id = await server.execute("reminder", { text: "tea" });
    const { page, faults } = await open(browser);
    await page.goto(`${server.console}/console/executions/reminder/${id}`);
    await page.getByText("Sleeps at").waitFor();
    for (const name of ["Suspend", "Cancel", "Replay as another"]) {
      const button = page.getByRole("button", { name, exact: true });
      assert.ok(await button.isDisabled(), name);
      assert.equal(await button.getAttribute("title"), "This console only reads");
    }
    await page.locator(".top").getByText("production · read only").waitFor();
    faults.push(...(await examine(page)));
    await shoot(page, "reader-light");
    await page.goto(`${server.console}/console/workflows/reminder`);
    assert.ok(await page.getByRole("button", { name: "Start" }).isDisabled());
    let sent = 0;
    page.on("request", (request) => (sent += request.method() === "POST" ? 1 : 0));
    await page.getByLabel("text").first().fill("tea");
    await page.keyboard.press("Control+Enter");
    assert.equal(sent, 0, "the keys do no more than the button");
    await page.context().close();
    clean(faults);
  } finally {
    await server.end();
  }
});

test("a token is asked for, refused, taken, and may allow less", async () => {
  const config = '[auth]\ndefault = "private"\nrules = [{ route = "POST /workflows/:id/executions/:executionId/cancel", roles = ["admin"] }]\n\n[auth.jwt]\n';
  const server = await Greenroom.start(everything, { config, environment: { JWT_SECRET: secret } });
  try {
    // refusals are what this is about, and browsers report them
    const { page, faults } = await open(browser, undefined, (text) => text.includes("401") || text.includes("403"));
    await page.goto(`${server.console}/console/workflows/reminder`);
    await page.getByText("This server needs a token").waitFor();
    await shoot(page, "token-light");
    await page.getByLabel("Token", { exact: true }).fill("not.a.token");
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText("does not accept the last token").waitFor();
    await page.getByLabel("Token", { exact: true }).fill(tokenOf("lea", ["support"]));
    await page.getByRole("button", { name: "Continue" }).click();
    await settle(page);

    await page.getByLabel("text").first().fill("tea");
    await page.getByRole("button", { name: "Start" }).click();
    await page.getByText("Sleeps at").waitFor();
    // what the token may not do is not offered, and says why, also where nothing can be pointed at
    await page.getByText("Cancel: One of these roles is required: admin.").waitFor();
    await shoot(page, "refused-light");
    faults.push(...(await examine(page)));
    const cancel = page.getByRole("button", { name: "Cancel", exact: true });
    assert.ok(await cancel.isDisabled());
    assert.match((await cancel.getAttribute("title")) ?? "", /admin/);
    assert.equal(await page.getByRole("button", { name: "Suspend" }).isDisabled(), false);

    // the tab keeps the token, others do not have it
    await page.reload();
    await page.getByText("Sleeps at").waitFor();
    const kept = await page.evaluate(() => JSON.stringify(localStorage).includes("eyJ"));
    assert.equal(kept, false);
    await page.context().close();
    clean(faults);
  } finally {
    await server.end();
  }
});

test("who may not see the inbox is told so, and another token sees it", async () => {
  const config = '[auth]\ndefault = "private"\nrules = [{ route = "GET /inbox", roles = ["admin"] }, { route = "GET /inbox/stream", roles = ["admin"] }]\n\n[auth.jwt]\n';
  const server = await Greenroom.start(everything, { config, environment: { JWT_SECRET: secret } });
  try {
    const { page, faults } = await open(browser, undefined, (text) => text.includes("401") || text.includes("403"));
    await page.goto(`${server.console}/console/inbox`);
    await page.getByLabel("Token", { exact: true }).fill(tokenOf("lea", ["support"]));
    await page.getByRole("button", { name: "Continue" }).click();
    await page.locator(".asks .problem", { hasText: "admin" }).waitFor();
    assert.equal(await page.getByText("Reading the inbox").count(), 0);
    await page.getByLabel("Settings").click();
    await Promise.all([page.waitForEvent("load"), page.getByRole("button", { name: "Forget the token" }).click()]);
    await page.getByLabel("Token", { exact: true }).fill(tokenOf("ada", ["admin"]));
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText("Nothing waits for a person").waitFor();
    await page.locator(".link.live").waitFor();
    await page.context().close();
    clean(faults);
  } finally {
    await server.end();
  }
});

for (const notices of ["the next action", "the stream of the inbox"]) {
  test(`what was typed stays when a token ends, which ${notices} notices`, async () => {
    const server = await Greenroom.start(everything, { config: '[auth]\ndefault = "private"\n\n[auth.jwt]\nleeway = "0s"\n', environment: { JWT_SECRET: secret } });
    try {
      const { page, faults } = await open(browser, undefined, (text) => text.includes("401"));
      const isAction = notices === "the next action";
      // The stream ends with the token, and asks for another one at once: here it is never answered.
      if (isAction) await page.route("**/inbox/stream", () => undefined);
      await page.goto(`${server.console}/console/workflows/reminder`);
      await page.getByLabel("Token", { exact: true }).fill(tokenOf("lea", [], 6));
      await page.getByRole("button", { name: "Continue" }).click();
      await page.getByLabel("text").first().fill("typed before the end");
      const start = page.getByRole("button", { name: "Start" });
      if (isAction) {
        await page.waitForTimeout(7000);
        await start.click();
      }
      await page.getByText("does not accept the last token").waitFor();
      await page.getByLabel("Token", { exact: true }).fill(tokenOf("lea", []));
      await page.getByRole("button", { name: "Continue" }).click();
      if (!isAction) await start.click();
      await page.getByText("Sleeps at").waitFor();
      await page.locator("main").getByText("typed before the end").first().waitFor();
      await page.context().close();
      clean(faults);
    } finally {
      await server.end();
    }
  });
}
