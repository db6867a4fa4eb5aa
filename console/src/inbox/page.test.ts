import assert from "node:assert/strict";
import { test } from "node:test";
import { pageOf } from "./page.ts";

function asked(description: string): unknown {
  return { type: "string", enum: ["done", "declined"], description };
}

function opening(openPage: unknown): unknown {
  return { ...(asked("Open https://other.example/ (at other.example). Then answer whether it is done.") as object), openPage };
}

test("the page of a question has its whole address and its host", () => {
  assert.deepEqual(pageOf(opening({ url: "https://pay.example/a?b=(c).", serverHost: "mcp.example" })), {
    address: "https://pay.example/a?b=(c).",
    host: "pay.example",
    isEncrypted: true,
    server: "mcp.example",
  });
  assert.deepEqual(pageOf(opening({ url: "http://127.0.0.1:8080/" })), { address: "http://127.0.0.1:8080/", host: "127.0.0.1:8080", isEncrypted: false, server: undefined });
});

test("what older versions stored has the address in its text", () => {
  assert.deepEqual(pageOf(asked("Open https://pay.example/a?b=(c) (at pay.example; the server is at mcp.example). Then answer whether it is done.")), {
    address: "https://pay.example/a?b=(c)",
    host: "pay.example",
    isEncrypted: true,
    server: "mcp.example",
  });
  assert.deepEqual(pageOf(asked("Open http://127.0.0.1:8080/ (at 127.0.0.1). Then answer whether it is done.")), {
    address: "http://127.0.0.1:8080/",
    host: "127.0.0.1:8080",
    isEncrypted: false,
    server: undefined,
  });
});

test("the host is the one that a browser opens", () => {
  for (const [address, host] of [
    ["https://bank.example@evil.example/", "evil.example"],
    ["https://bank.example%2f@evil.example/", "evil.example"],
    ["https://b\u0430nk.example/", "xn--bnk-6cd.example"],
  ]) {
    assert.equal(pageOf(asked(`Open ${address} (at bank.example). Then answer whether it is done.`))?.host, host, address);
    assert.equal(pageOf(opening({ url: address }))?.host, host, address);
  }
});

test("what is no page of a server has none", () => {
  for (const schema of [
    asked("Open javascript:alert(1) (at x). Then answer whether it is done."),
    asked("Open data:text/html,x (at x). Then answer whether it is done."),
    asked("Open the door (at x). Then answer whether it is done."),
    asked("Is it done?"),
    opening({ url: "javascript:alert(1)" }),
    opening({ url: "data:text/html,x" }),
    opening({ url: ["https://a.example/"] }),
    opening({}),
    opening(null),
    opening("https://a.example/"),
    { type: "string", enum: ["done"], openPage: { url: "https://a.example/" } },
    { type: "string", enum: ["done"], description: "Open https://a.example/ (at a.example). Then answer" },
    { type: "string", enum: ["done", "declined"] },
    null,
    undefined,
    "text",
  ]) {
    assert.equal(pageOf(schema), null, JSON.stringify(schema));
  }
});
