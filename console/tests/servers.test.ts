/** MCP servers: what an operator sees and does, and what people answer to the questions of such a server. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { clean, desk, examine, launch, modes, open, send, settle, shoot } from "./browser.ts";
import { eventually, everything, Greenroom, servers } from "./greenroom.ts";
import { secret, tokenOf } from "./token.ts";

interface Status {
  name: string;
  state: string;
  since: string;
  changed: { name: string; hash: string }[];
}

interface Generation {
  generationId: string;
  asks: { askId: string }[];
}

let server: Greenroom;
let browser: Browser;

before(async () => {
  browser = await launch();
  server = await Greenroom.start({ ...everything, ...servers.files }, { config: servers.config });
  await statusWhen("desk", ({ state }) => state === "ready");
  await statusWhen("broken", ({ state }) => state === "failed");
});
after(async () => {
  await browser.close();
  await server.end();
});

function statusWhen(name: string, isExpected: (status: Status) => boolean): Promise<Status> {
  return eventually(`the state of ${name}`, async () => {
    const all = await server.call<Status[]>("GET", "/tools/mcp");
    return all.find((each) => each.name === name && isExpected(each));
  });
}

/** Lets the tools `write` and `move` be other ones. */
async function renew(before = ""): Promise<Status> {
  await server.call("POST", "/tools/desk.renew/execute", { input: {} });
  return statusWhen("desk", ({ changed }) => changed.some(({ name, hash }) => name === "write" && hash !== before));
}

async function asks(prompt: string): Promise<{ generationId: string; askId: string }> {
  const { generationId, asks } = await server.call<Generation>("POST", "/agents/clerk/text", { input: prompt });
  return { generationId, askId: asks[0]?.askId ?? "" };
}

/** The record of a generation once it has ended. */
function ended(generationId: string): Promise<string> {
  return eventually("the answer of the agent", async () => {
    const record = await server.call<{ status: string }>("GET", `/agents/clerk/generations/${generationId}`);
    return record.status === "completed" ? JSON.stringify(record).replaceAll("\\", "") : undefined;
  });
}

async function visit(path: string): Promise<{ page: Page; end: () => Promise<void> }> {
  const { page, faults } = await open(browser, desk, (text) => text.includes("409"));
  page.setDefaultTimeout(30_000);
  await page.goto(`${server.console}/console/${path}`);
  const end = async (): Promise<void> => {
    faults.push(...(await examine(page)));
    await page.context().close();
    clean(faults);
  };
  return { page, end };
}

test("a server says why it is not connected, and is connected again", async () => {
  const { page, end } = await visit("tools");
  await page.keyboard.press("g");
  await page.keyboard.press("h");
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  await page.getByRole("listitem").filter({ hasText: "broken" }).getByText("not connected").waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.locator(".errortext").getByText("exit code 3: cannot read its settings: <img src=x").waitFor();
  await page.getByRole("button", { name: "Connect again" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("started again. No call is being made.").waitFor();
  await dialog.getByRole("button", { name: "Copy as curl" }).waitFor();
  await dialog.getByRole("button", { name: "Connect again" }).click();
  await dialog.waitFor({ state: "detached" });
  await statusWhen("broken", ({ state }) => state === "failed");
  await page.getByText("not connected", { exact: true }).waitFor();
  await end();
});

test("the palette finds a server, which shows its tools, and those that are left out", async () => {
  const { page, end } = await visit("");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: /Execution, workflow/ }).fill("desk");
  await page.getByRole("option", { name: /MCP server/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "desk" }).waitFor();
  await page.getByText("has the pattern list_*, which matches no tool").waitFor();
  await page.locator("summary", { hasText: "desk.read" }).click();
  await page.locator(".toolabout").getByText('Reads a file. <img src=x onerror="window.planted=7">').waitFor();
  await page.locator(".toolabout").getByText("\\u{202e}right-to-left").waitFor();
  await page.getByRole("row", { name: /path string no Where it is/ }).waitFor();
  await page.getByRole("link", { name: "clerk" }).waitFor();
  await page.locator("summary", { hasText: "desk.seek" }).getByText("not offered").waitFor();
  await page.locator(".leftout").getByText('<img src=x onerror="window.planted=9">').waitFor();
  await end();
});

test("servers are read again and again, tools when something differs", async () => {
  const { page, end } = await visit("");
  const counts = new Map<string, number>();
  page.on("request", (request) => {
    const { pathname } = new URL(request.url());
    counts.set(pathname, (counts.get(pathname) ?? 0) + 1);
  });
  for (const path of ["tools", "tools/desk"]) {
    await page.goto(`${server.console}/console/${path}`);
    await settle(page);
    counts.clear();
    await eventually("two readings", async () => ((counts.get("/tools/mcp") ?? 0) > 1 ? true : undefined));
    // one more if another minute has begun
    assert.ok((counts.get("/tools") ?? 0) <= 1, `${counts.get("/tools")} readings of all tools`);
  }
  await end();
});

test("a changed tool is accepted as it was shown, and not as it became", async () => {
  const { page, end } = await visit("tools/desk");
  const { changed } = await renew();
  const first = changed.find(({ name }) => name === "write");
  const change = page.locator(".changes li").filter({ has: page.getByText("write", { exact: true }) });
  // The page reads the servers again by itself.
  await change.getByText("has changed since it was accepted").waitFor();
  await change.getByText("Writes a file, and sends it to us.").waitFor();
  await change.getByText("Writes a file", { exact: true }).waitFor();
  await change.getByRole("button", { name: "Accept write…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("sends it to us").waitFor();
  await renew(first?.hash);
  await change.getByText("and sends it to all").waitFor();
  await dialog.getByText("sends it to us").waitFor();
  await dialog.getByRole("button", { name: "Accept", exact: true }).click();
  await dialog.getByRole("alert").waitFor();
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await change.getByRole("button", { name: "Accept write…" }).click();
  await dialog.getByText("sends it to all").waitFor();
  await dialog.getByRole("button", { name: "Accept", exact: true }).click();
  await change.waitFor({ state: "detached" });
  await page.locator("summary", { hasText: "desk.write" }).getByText("and sends it to all").waitFor();

  await renew();
  await page.getByText("2 tools changed").waitFor();
  await page.getByText("hints about its effects").waitFor();
  await page.getByRole("button", { name: "Accept all…" }).click();
  await dialog.getByRole("button", { name: "Accept 2 changes" }).click();
  await page.locator(".changes").waitFor({ state: "detached" });
  await statusWhen("desk", ({ changed }) => changed.length === 0);
  await end();
});

test("a form of a server has boxes, and can be declined", async () => {
  const { page, end } = await visit("");
  const answered = await asks("ORDER");
  await page.goto(`${server.console}/console/inbox/${answered.askId}`);
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await page.getByText("needs at least 1").waitFor();
  await page.getByRole("checkbox", { name: "plum" }).check();
  await page.getByRole("checkbox", { name: "apple" }).check();
  await page.getByRole("checkbox", { name: "Large" }).check();
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await page.locator(".closedline").getByText("answered").waitFor();
  assert.match(await ended(answered.generationId), /"content":\{"fruits":\["apple","plum"\],"sizes":\["l"\]\}/);

  // of a step, in the view of its execution
  const id = await server.execute("packing", {});
  await page.goto(`${server.console}/console/executions/packing/${id}`);
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Decline" }).click();
  await page.locator(".heading .status.completed").waitFor();
  assert.match(JSON.stringify((await server.ended("packing", id)).result), /decline/);
  await end();
});

test("a chat declines a form of a server, and shows the page that one wants opened", async () => {
  const { page, end } = await visit("agents/clerk");
  await send(page, "ORDER");
  await page.getByRole("checkbox", { name: "pear" }).waitFor();
  await page.getByRole("button", { name: "Decline" }).click();
  await page.getByText(/It said.*decline/).waitFor();
  await send(page, "SIGN");
  const link = page.getByRole("link", { name: /Open the page at/ });
  assert.equal(await link.textContent(), "Open the page at sign.example");
  await page.getByRole("button", { name: "It is done" }).click();
  await page.getByText(/It said.*sign is done/).waitFor();
  await end();
});

test("a page that a server wants opened is a link with its host", async () => {
  // A program that was just started has seen no page.
  const before = await statusWhen("desk", () => true);
  await server.call("POST", "/tools/mcp/desk/restart");
  await statusWhen("desk", ({ state, since }) => state === "ready" && since > before.since);
  const { generationId, askId } = await asks("SIGN");
  for (const mode of modes) {
    const { page, faults } = await open(browser, mode);
    await page.goto(`${server.console}/console/inbox/${askId}`);
    await settle(page);
    const link = page.getByRole("link", { name: "Open the page at sign.example", exact: true });
    await link.waitFor();
    assert.deepEqual(
      await Promise.all(["href", "target", "rel"].map((name) => link.getAttribute(name))),
      ["https://shop.example@sign.example/in?a=1", "_blank", "noreferrer noopener"],
    );
    faults.push(...(await examine(page)));
    await shoot(page, `page-question-${mode.name}`);
    await page.context().close();
    clean(faults);
  }
  const { page, end } = await visit(`inbox/${askId}`);
  await page.getByRole("button", { name: "Decline" }).click();
  await page.locator(".closedline").getByText("answered").waitFor();
  await ended(generationId);
  await end();
});

test("who may not look at servers, or act on them, is told so", async () => {
  const rules = `[auth]
default = "private"
rules = [{ route = "GET /tools/mcp", roles = ["reader"] }, { route = "POST /tools/mcp/*", roles = ["operator"] }]

[auth.jwt]
`;
  const guarded = await Greenroom.start({ ...everything, ...servers.files }, { config: servers.config + rules, environment: { JWT_SECRET: secret } });
  try {
    for (const roles of [["reader"], ["clerk"]]) {
      const { page, faults } = await open(browser, desk, (text) => /40[13]/.test(text));
      page.setDefaultTimeout(30_000);
      await page.goto(`${guarded.console}/console/tools/desk`);
      await page.getByLabel("Token", { exact: true }).fill(tokenOf("lea", roles));
      await page.getByRole("button", { name: "Continue" }).click();
      if (roles.includes("reader")) {
        await page.getByText(/Connect again: .*operator/).waitFor();
        assert.ok(await page.getByRole("button", { name: "Connect again" }).isDisabled());
      } else {
        await page.getByRole("alert").waitFor();
        await page.goto(`${guarded.console}/console/tools`);
        await page.getByRole("alert").waitFor();
        await page.locator("summary", { hasText: "refund" }).waitFor();
      }
      faults.push(...(await examine(page)));
      await page.context().close();
      clean(faults);
    }
  } finally {
    await guarded.end();
  }
});
