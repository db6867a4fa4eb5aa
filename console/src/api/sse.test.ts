import assert from "node:assert/strict";
import { test } from "node:test";
import { curl, quote } from "./curl.ts";
import { FrameReader } from "./sse.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

test("frames are found wherever the bytes are cut", () => {
  const text = ": hello\n\nid: 1\ndata: {\"a\":\ndata: 1}\n\nevent: x\r\ndata:  two\r\n\r\nid: 3\ndata: ü\n\n";
  const all = bytes(text);
  const whole = new FrameReader().read(all);
  assert.deepEqual(whole.map((frame) => [frame.id, frame.event, frame.data]), [["1", "", '{"a":\n1}'], ["1", "x", " two"], ["3", "", "ü"]]);
  for (let cut = 1; cut < all.length; cut++) {
    const reader = new FrameReader();
    assert.deepEqual([...reader.read(all.slice(0, cut)), ...reader.read(all.slice(cut))], whole, `cut at ${cut}`);
  }
});

test("a line of many pieces is one line", () => {
  const reader = new FrameReader();
  const piece = bytes("x".repeat(65_536));
  const found = [...reader.read(bytes("data: "))];
  for (let n = 0; n < 256; n++) found.push(...reader.read(piece));
  found.push(...reader.read(bytes("\r")), ...reader.read(bytes("\n\r\n")));
  assert.deepEqual(found.map((frame) => frame.data.length), [256 * 65_536]);
});

test("nothing is read behind the place of dropped events, wherever the bytes are cut", () => {
  const all = bytes(": a comment\n\nid: 1\ndata: one\n\n: dropped 2\n\nid: 4\ndata: four\n\n");
  for (let cut = 0; cut < all.length; cut++) {
    const reader = new FrameReader();
    const found = [...reader.read(all.slice(0, cut)), ...reader.read(all.slice(cut))];
    assert.deepEqual([found.map((frame) => frame.id), reader.hasGap], [["1"], true], `cut at ${cut}`);
  }
});

test("a frame without its empty line is not complete", () => {
  assert.deepEqual(new FrameReader().read(bytes("data: 1\n")), []);
});

test("a shell reads the body of a command as it was", () => {
  assert.equal(quote("it's"), "'it'\\''s'");
  assert.equal(curl("GET", "/inbox", undefined, "http://h"), "curl -s 'http://h/inbox'");
  assert.equal(curl("POST", "/x", { a: "'" }, ""), `curl -s '/x' \\\n  -H 'content-type: application/json' \\\n  -d '{"a":"'\\''"}'`);
});
