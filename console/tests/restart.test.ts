/** The server is killed while somebody looks: the page says so, finds it again, and the work goes on. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { clean, desk, launch, modes, open, send, shoot } from "./browser.ts";
import { Greenroom, shipped } from "./greenroom.ts";

test("an approval goes on after the server was killed", async () => {
  const server = await Greenroom.start(shipped);
  const browser = await launch();
  try {
    // while the server is away, requests fail, which browsers report
    const { page, faults } = await open(browser, desk, (text) => text.includes("ERR_CONNECTION_REFUSED") || text.includes("ERR_INCOMPLETE") || text.includes("ERR_CONNECTION_RESET") || text.includes("ERR_EMPTY_RESPONSE"));
    await page.goto(`${server.console}/console`);
    await page.getByRole("button", { name: "Run the expense approval" }).click();
    await page.getByText("waits for an answer at").waitFor();
    await page.evaluate(() => ((window as unknown as { opened: boolean }).opened = true));

    await server.kill();
    await page.getByText(/Next try in \d+ s/).waitFor();
    await shoot(page, "lost-light");
    await page.getByText("not connected").waitFor();
    await server.again();
    await page.getByText(/No connection for/).waitFor({ state: "detached", timeout: 60_000 });
    await page.getByText("waits for an answer at").waitFor();

    // in the inbox, on a phone
    const phone = await open(browser, modes[2]);
    await phone.page.goto(`${server.console}/console/inbox`);
    await phone.page.getByRole("link", { name: /Ada/ }).or(phone.page.getByRole("button", { name: /Ada/ })).first().click();
    await phone.page.getByRole("radio", { name: "Yes" }).first().check();
    await shoot(phone.page, "approve-phone-light");
    await phone.page.getByRole("button", { name: "Answer", exact: true }).click();

    // the first page was never loaded again by hand
    await page.locator(".heading .status.completed").waitFor();
    await page.getByText("paid").first().waitFor();
    assert.equal(await page.evaluate(() => (window as unknown as { opened?: boolean }).opened), true);
    clean([...faults, ...phone.faults]);
  } finally {
    await browser.close();
    await server.end();
  }
});

test("an answer that a kill ended is found again, with what was asked", async () => {
  const server = await Greenroom.start(shipped, { config: '[models.slow]\nprovider = "rehearsal"\npace = "100ms"\n[agents.slow]\nmodel = "slow"\n' });
  const browser = await launch();
  try {
    const { page, faults } = await open(browser, desk, (text) => /ERR_(CONNECTION_REFUSED|INCOMPLETE|CONNECTION_RESET|EMPTY_RESPONSE)/.test(text));
    await page.goto(`${server.console}/console/agents/slow`);
    await send(page, Array.from({ length: 200 }, (_, n) => `w${n}`).join(" "));
    await page.locator(".message.assistant", { hasText: "w9" }).waitFor();
    await server.kill();
    await server.again();
    await page.getByText("interrupted by a restart").waitFor({ timeout: 60_000 });
    await page.locator(".message.user", { hasText: "w199" }).waitFor();
    await page.getByRole("button", { name: "Send" }).waitFor();
    clean(faults);
  } finally {
    await browser.close();
    await server.end();
  }
});
