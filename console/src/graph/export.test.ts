import assert from "node:assert/strict";
import { test } from "node:test";
import type { WorkflowStep } from "../api/types.ts";
import { nodesOf } from "./definition.ts";
import { mermaidOf, svgOf } from "./export.ts";

const leaf = (id: string, name = id): WorkflowStep => ({ id, name, type: "andThen", purpose: "" });
const steps: WorkflowStep[] = [leaf("a", 'say "hi" <b>'), { id: "all", name: "all", type: "andAll", purpose: "", steps: [{ ...leaf("x"), block: "l" }, { ...leaf("y"), block: "r" }] }];

test("a drawing that stands alone has no markup of names", () => {
  const svg = svgOf(nodesOf(steps), "T & T");
  assert.match(svg, /^<svg xmlns/);
  assert.ok(svg.includes("say &quot;hi&quot; &lt;b&gt;") && svg.includes("T &amp; T") && !svg.includes("<b>"));
});

test("mermaid has sequences and blocks", () => {
  assert.equal(
    mermaidOf(nodesOf(steps)),
    ['flowchart TD', '  s0["say #quot;hi#quot; <b> · step"]', '  subgraph s1 ["all · all"]', '    s2["x · step"]', '    s3["y · step"]', "  end", "  s0 --> s1", ""].join("\n"),
  );
});
