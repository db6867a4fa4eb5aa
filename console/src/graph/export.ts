import { isParallel, lanesOf, type Node, typeWord } from "./definition.ts";
import { middle } from "../lib/text.ts";
import { layout } from "./layout.ts";

/** A definition as a drawing that stands alone: for documents, and for those who have no console. */
export function svgOf(nodes: readonly Node[], title: string): string {
  const { width, height, placed, edges, lanes } = layout(nodes);
  const pad = 16;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width + 2 * pad}" height="${height + 2 * pad}" viewBox="${-pad} ${-pad} ${width + 2 * pad} ${height + 2 * pad}" font-family="system-ui, sans-serif" font-size="12">`,
    `<title>${escape(title)}</title>`,
    `<rect x="${-pad}" y="${-pad}" width="${width + 2 * pad}" height="${height + 2 * pad}" fill="#ffffff"/>`,
  ];
  for (const edge of edges) parts.push(`<polyline points="${edge.points.map((point) => point.join(",")).join(" ")}" fill="none" stroke="#8b8e93" stroke-width="1.5"/>`);
  for (const lane of lanes) parts.push(`<text x="${lane.x + lane.width / 2 + 6}" y="${lane.y + 13}" fill="#5a5d63" font-size="11">${escape(lane.text)}</text>`);
  for (const { node, x, y, width: w, height: h, as } of placed) {
    if (as === "bar") parts.push(`<path d="M${x} ${y + 29}H${x + w}M${x} ${y + h}H${x + w}" stroke="#5a5d63" stroke-width="2" fill="none"/>`);
    else parts.push(`<rect x="${x}" y="${y}" width="${w}" height="${h}" rx="5" fill="${as === "frame" ? "none" : "#fbfbfa"}" stroke="#8b8e93"/>`);
    const sub = wordsOf(node).join(" · ");
    if (as === "box") {
      parts.push(`<text x="${x + 10}" y="${y + 18}" font-weight="500">${escape(middle(node.name, Math.floor((w - 16) / 6.8)))}</text>`, `<text x="${x + 10}" y="${y + 34}" fill="#5a5d63" font-size="11">${escape(middle(sub, Math.floor((w - 16) / 6)))}</text>`);
    } else {
      parts.push(`<text x="${x + 10}" y="${y + 18}" font-weight="500">${escape(node.name)} <tspan fill="#5a5d63" font-size="11">${escape(sub)}</tspan></text>`);
    }
  }
  return `${parts.join("\n")}\n</svg>\n`;
}

function escape(text: string): string {
  const safe: Record<string, string> = { "<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;" };
  return text.replace(/[<>&"]/g, (letter) => safe[letter] ?? "").replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "");
}

function wordsOf(node: Node): string[] {
  return [typeWord(node.type), node.calls, node.undo && `↩ ${node.undo}`].filter(Boolean);
}

/** The same in the language of Mermaid, which many documents understand. */
export function mermaidOf(nodes: readonly Node[]): string {
  const lines = ["flowchart TD"];
  const ids = new Map<Node, string>();
  const idOf = (node: Node): string => {
    const id = ids.get(node) ?? `s${ids.size}`;
    ids.set(node, id);
    return id;
  };
  const sequence = (list: readonly Node[], indent: string): void => {
    for (const node of list) step(node, indent);
    for (let index = 1; index < list.length; index++) {
      const [from, to] = [list[index - 1], list[index]];
      if (from && to) lines.push(`${indent}${idOf(from)} --> ${idOf(to)}`);
    }
  };
  const step = (node: Node, indent: string): void => {
    const label = quoted([node.name, ...wordsOf(node)].join(" · "));
    if (node.children.length === 0) {
      lines.push(`${indent}${idOf(node)}[${label}]`);
      return;
    }
    lines.push(`${indent}subgraph ${idOf(node)} [${label}]`);
    if (isParallel(node)) for (const lane of lanesOf(node)) sequence(lane.nodes, `${indent}  `);
    else sequence(node.children, `${indent}  `);
    lines.push(`${indent}end`);
  };
  sequence(nodes, "  ");
  return `${lines.join("\n")}\n`;
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', "#quot;").replaceAll(/[\r\n]+/g, " ")}"`;
}
