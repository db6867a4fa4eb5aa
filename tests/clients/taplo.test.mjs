// Configurations in an editor: taplo, which VS Code's "Even Better TOML" is made of, with the schema.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const taplo = fileURLToPath(new URL("node_modules/.bin/taplo", import.meta.url));

/** Checks configurations beside their schema, as `greenroom init` leaves them. */
function lint(files) {
  const folder = mkdtempSync(join(tmpdir(), "taplo-"));
  copyFileSync(join(root, "docs/config.schema.json"), join(folder, "config.schema.json"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return spawnSync(taplo, ["lint", ...Object.keys(files)], { cwd: folder, encoding: "utf8" });
}

const written = readFileSync(join(root, "src/cli/init/config.toml"), "utf8");
const shipped = readFileSync(join(root, "config.toml"), "utf8");

test("what greenroom writes and ships has no marks", () => {
  const files = { "written.toml": written, "shipped.toml": `#:schema ./config.schema.json\n\n${shipped}` };
  const { status, stderr } = lint(files);
  assert.equal(status, 0, stderr);
});

test("wrong keys and values are marked", () => {
  const wrong = [
    ["port = 3141", "prot = 3141", "'prot' was unexpected"],
    ['host = "127.0.0.1"', "host = 127", "is not of type"],
    ["map = { refunded", "mpa = { refunded", "'mpa' was unexpected"],
    ['deadline = "48h"', 'deadline = "two days"', "does not match"],
  ];
  let text = written;
  for (const [right, instead] of wrong) {
    assert.ok(text.includes(right), right);
    text = text.replace(right, instead);
  }
  const { status, stderr } = lint({ "wrong.toml": text });
  assert.notEqual(status, 0);
  for (const [, , mark] of wrong) assert.ok(stderr.includes(mark), `${mark}: ${stderr}`);
});
