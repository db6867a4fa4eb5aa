/**
 * Walks through every view, in both themes, on a desk and on a phone: no view scrolls sideways, has a finding of
 * axe, an error in its console, or runs text that callers chose. `ONLY=inbox` walks through one of them.
 */

import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { clean, desk, examine, launch, modes, open, settle, shoot } from "./browser.ts";
import { everything, Greenroom, servers, shipped } from "./greenroom.ts";
import { nasty, plant, type Planted } from "./plant.ts";

const only = process.env.ONLY;
let server: Greenroom;
let browser: Browser;
let planted: Planted;

before(async () => {
  browser = await launch();
  server = await Greenroom.start({ ...everything, ...servers.files }, { config: servers.config });
  planted = await plant(server);
});
after(async () => {
  await browser.close();
  await server.end();
});

function views(): Record<string, string> {
  const agent = "/console/agents/assistant";
  return {
    home: "/console",
    executions: "/console/executions",
    failures: "/console/executions?status=error",
    between: "/console/executions?range=between&from=2026-01-02T10:00",
    "nothing-found": "/console/executions?user=nobody-at-all",
    waiting: `/console/executions/expense-approval/${planted.waiting}`,
    "waiting-past": `/console/executions/expense-approval/${planted.waiting}?at=3&step=classify`,
    failed: `/console/executions/flaky/${planted.failed}?step=book&failures=1`,
    broken: `/console/executions/letter/${planted.broken}?step=write`,
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
    tools: "/console/tools",
    server: "/console/tools/desk",
    "server-away": "/console/tools/broken",
    "no-server": "/console/tools/nowhere",
    form: `/console/inbox/${planted.form}`,
    page: `/console/inbox/${planted.page}`,
    traces: "/console/observe",
    trace: `/console/observe/traces/${planted.trace}`,
    logs: "/console/observe?tab=logs",
    metrics: "/console/observe?tab=metrics",
    connect: "/console/connect",
    compare: `/console/compare?a=trip/${planted.completed}&b=flaky/${planted.failed}`,
    "no-page": "/console/nowhere",
  };
}

for (const mode of modes) {
  test(`views in ${mode.name}`, async () => {
    const { page, faults } = await open(browser, mode);
    for (const [name, path] of Object.entries(views())) {
      if (only && only !== name) continue;
      await page.goto(server.console + path);
      await settle(page);
      faults.push(...(await examine(page)).map((fault) => `${name}: ${fault}`));
      await shoot(page, `${name}-${mode.name}`);
    }
    await page.context().close();
    clean(faults);
  });
}

test("texts of callers are texts", async () => {
  const { page, faults } = await open(browser);
  // what the MCP server of the tests says
  const program = ['<img src=x onerror="window.planted=7">', "<script>window.planted=8</script>"];
  const told = [...nasty.slice(0, 4), "right-to-left"];
  const shows = async (path: string, texts: string[]): Promise<void> => {
    await page.goto(server.console + path);
    await settle(page);
    for (const summary of await page.locator(":is(.message, .toollist) summary").all()) await summary.click();
    const main = page.locator("main");
    for (const text of texts) await main.filter({ hasText: text }).waitFor();
    faults.push(...(await examine(page)).map((fault) => `${path}: ${fault}`));
  };

  await shows("/console/executions", [planted.user.slice(0, 20)]);
  await shows(`/console/executions/expense-approval/${planted.waiting}`, told);
  await shows(`/console/executions/flaky/${planted.failed}`, told);
  await shows(`/console/executions/letter/${planted.broken}`, ['<img src=x onerror="window.planted=6"> is no model']);
  await shows(`/console/executions/reminder/${planted.held}`, told.slice(0, 1));
  await shows(`/console/inbox/${planted.question}`, told);
  await shows(`/console/inbox/${planted.approval}`, told);
  await shows(`/console/agents/assistant?chat=${planted.chat}&user=${encodeURIComponent(planted.user)}`, told);
  await shows("/console/tools", [program[0] ?? ""]);
  await shows("/console/tools/desk", [...program, '<img src=x onerror="window.planted=9">', "\\u{202e}right-to-left"]);
  await shows("/console/tools/broken", program);
  await shows(`/console/inbox/${planted.form}`, program);
  await shows(`/console/inbox/${planted.page}`, program);
  await page.context().close();
  clean(faults);
});

test("an empty server teaches", async () => {
  const empty = await Greenroom.start(shipped);
  try {
    for (const mode of [desk, modes[2] ?? desk]) {
      const { page, faults } = await open(browser, mode);
      for (const [name, path] of Object.entries({ home: "", executions: "/executions", inbox: "/inbox", tools: "/tools", traces: "/observe", logs: "/observe?tab=logs", history: "/agents/assistant?tab=history", memory: "/agents/assistant?tab=memory" })) {
        await page.goto(`${empty.console}/console${path}`);
        await settle(page);
        faults.push(...(await examine(page)).map((fault) => `empty ${name}: ${fault}`));
        await shoot(page, `empty-${name}-${mode.name}`);
      }
      await page.context().close();
      clean(faults);
    }
  } finally {
    await empty.end();
  }
});
