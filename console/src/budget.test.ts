import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

/** Compressed bytes of what the first page loads, and of everything. */
const firstMax = 150_000;
const allMax = 400_000;

const dist = new URL("../dist/", import.meta.url);

async function packed(name: string): Promise<number> {
  return gzipSync(await readFile(new URL(name, dist)), { level: 9 }).length;
}

test("the built files stay small", async () => {
  const page = await readFile(new URL("index.html", dist), "utf8");
  const named = [...page.matchAll(/\/console\/(assets\/[\w.-]+)/g)].map(([, name]) => name ?? "");
  assert.ok(named.length >= 2, page);
  const sizes = await Promise.all(["index.html", ...named].map(packed));
  const first = sizes.reduce((sum, size) => sum + size, 0);
  assert.ok(first <= firstMax, `the first page loads ${first} bytes`);

  const assets = await readdir(new URL("assets/", dist));
  const all = (await Promise.all(assets.map((name) => packed(`assets/${name}`)))).reduce((sum, size) => sum + size, 0);
  assert.ok(all <= allMax, `all files have ${all} bytes`);
});
