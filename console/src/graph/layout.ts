import { count, isParallel, type Lane, lanesOf, type Node } from "./definition.ts";

/** Place at which a step is drawn. */
export interface Placed {
  node: Node;
  x: number;
  y: number;
  width: number;
  height: number;
  /** `bar`: parallel lanes under a line; `frame`: one block in a frame; `folded`: a container as one box. */
  as: "box" | "bar" | "frame" | "folded";
  /** Steps inside, of a folded container. */
  inside: number;
}

/** A line between steps. */
export interface Edge {
  /** Key of the step that it leads to; empty at the end of a container. */
  to: string;
  points: [number, number][];
}

export interface LaneLabel {
  x: number;
  y: number;
  width: number;
  text: string;
}

export interface Drawing {
  width: number;
  height: number;
  placed: Placed[];
  edges: Edge[];
  lanes: LaneLabel[];
}

/** Three lanes of these can be read in the pane of an execution. */
const box = { width: 152, height: 44 };
const gap = { between: 20, lanes: 16, pad: 12 };
const head = 30;
const laneHead = 18;
const foot = 10;

interface Size {
  width: number;
  height: number;
}

/**
 * Lays a definition out. Workflows are made of sequences and blocks, so boxes in boxes are exact: sequences
 * run downwards, lanes stand side by side.
 */
export function layout(nodes: readonly Node[], folded: ReadonlySet<string> = new Set()): Drawing {
  const drawing: Drawing = { width: 0, height: 0, placed: [], edges: [], lanes: [] };
  const sizes = new Map<Node, Size>();
  const whole = measure(nodes, folded, sizes);
  place(nodes, 0, 0, whole.width, { drawing, folded, sizes });
  drawing.width = whole.width;
  drawing.height = whole.height;
  return drawing;
}

function measure(nodes: readonly Node[], folded: ReadonlySet<string>, sizes: Map<Node, Size>): Size {
  let width = 0;
  let height = 0;
  for (const node of nodes) {
    const size = measureOne(node, folded, sizes);
    sizes.set(node, size);
    width = Math.max(width, size.width);
    height += size.height + (height > 0 ? gap.between : 0);
  }
  return { width, height };
}

function measureOne(node: Node, folded: ReadonlySet<string>, sizes: Map<Node, Size>): Size {
  if (node.children.length === 0 || folded.has(node.key)) return { ...box };
  if (!isParallel(node)) {
    const inner = measure(node.children, folded, sizes);
    return { width: Math.max(inner.width, box.width + 2 * gap.pad) + 2 * gap.pad, height: head + inner.height + gap.between + gap.pad };
  }
  const lanes = lanesOf(node).map((lane) => measure(lane.nodes, folded, sizes));
  const width = lanes.reduce((sum, lane) => sum + lane.width, 0) + gap.lanes * (lanes.length - 1);
  const height = Math.max(...lanes.map((lane) => lane.height));
  return { width: Math.max(width, box.width), height: head + laneHead + height + gap.between + foot };
}

interface Hands {
  drawing: Drawing;
  folded: ReadonlySet<string>;
  sizes: Map<Node, Size>;
}

/** Places a sequence in the middle of a column, with edges between its steps. */
function place(nodes: readonly Node[], x: number, y: number, width: number, hands: Hands): number {
  const middle = x + width / 2;
  let top = y;
  nodes.forEach((node, index) => {
    const size = hands.sizes.get(node) ?? box;
    if (index > 0) {
      hands.drawing.edges.push({ to: node.key, points: [[middle, top], [middle, top + gap.between]] });
      top += gap.between;
    }
    placeOne(node, middle - size.width / 2, top, size, hands);
    top += size.height;
  });
  return top;
}

function placeOne(node: Node, x: number, y: number, size: Size, hands: Hands): void {
  const { drawing, folded } = hands;
  if (node.children.length === 0 || folded.has(node.key)) {
    const as = node.children.length === 0 ? "box" : "folded";
    drawing.placed.push({ node, x, y, ...size, as, inside: as === "folded" ? count(node.children) : 0 });
    return;
  }
  const parallel = isParallel(node);
  drawing.placed.push({ node, x, y, ...size, as: parallel ? "bar" : "frame", inside: 0 });
  if (parallel) {
    placeLanes(lanesOf(node), x, y, size, hands);
    return;
  }
  const middle = x + size.width / 2;
  const first = node.children[0];
  drawing.edges.push({ to: first?.key ?? "", points: [[middle, y + head], [middle, y + head + gap.between]] });
  place(node.children, x + gap.pad, y + head + gap.between, size.width - 2 * gap.pad, hands);
}

function placeLanes(lanes: Lane[], x: number, y: number, size: Size, hands: Hands): void {
  const widths = lanes.map((lane) => Math.max(...lane.nodes.map((node) => hands.sizes.get(node)?.width ?? box.width)));
  const used = widths.reduce((sum, width) => sum + width, 0) + gap.lanes * (lanes.length - 1);
  const bottom = y + size.height;
  let left = x + (size.width - used) / 2;
  lanes.forEach((lane, index) => {
    const width = widths[index] ?? box.width;
    const middle = left + width / 2;
    const top = y + head + laneHead + 2;
    hands.drawing.lanes.push({ x: left, y: y + head, width, text: lane.name });
    hands.drawing.edges.push({ to: lane.nodes[0]?.key ?? "", points: [[middle, y + head], [middle, top]] });
    const end = place(lane.nodes, left, top, width, hands);
    hands.drawing.edges.push({ to: "", points: [[middle, end], [middle, bottom]] });
    left += width + gap.lanes;
  });
}
