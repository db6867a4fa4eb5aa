// The browser of this machine.

import assert from "node:assert/strict";

import { chromium } from "playwright-core";

/** Starts the browser, for which hosts of `example` are this machine. */
export async function launch() {
  const executablePath = process.env.GREENROOM_BROWSER;
  assert.ok(executablePath, "GREENROOM_BROWSER is not set; run cargo test --test it clients::");
  const args = ["--no-sandbox", "--host-resolver-rules=MAP *.example 127.0.0.1"];
  return chromium.launch({ executablePath, args });
}
