import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { middle } from "../lib/text.ts";
import { type Kind, MarkIn, word } from "../parts/Status.tsx";
import { count, type Node, typeWord, undoOf } from "./definition.ts";
import { type Drawing, layout, type Placed } from "./layout.ts";
import { usePan } from "./pan.ts";
import "./graph.css";

/** Look of a step in the graph. */
export interface Look {
  kind: Kind;
  /** A duration, or how many of its rounds are done. */
  text: string;
}

interface GraphProps {
  nodes: readonly Node[];
  /** Without it, steps have no states. */
  look?: (key: string) => Look;
  selected?: string | undefined;
  select?: (key: string) => void;
  label: string;
}

/** Room around the drawing, and below it for the buttons; the style has the same. */
const pad = 12;
const below = 28;

/** More steps than this fold to their top level first. */
const stepsShown = 500;

/** Draws a definition. Of a large one only what is in view is drawn. */
export function Graph({ nodes, look: given, selected, select, label }: GraphProps) {
  const look = given ?? stateless;
  const [folded, setFolded] = useState<ReadonlySet<string>>(() => (count(nodes) > stepsShown ? containers(nodes) : new Set()));
  const [zoom, setZoom] = useState(1);
  const drawing = useMemo(() => layout(nodes, folded), [nodes, folded]);
  const port = useRef<HTMLDivElement>(null);
  const view = useView(port, drawing, zoom);
  // As much of it as can be read, from its middle.
  useEffect(() => {
    const element = port.current;
    if (!element) return;
    const fit = (element.clientWidth - 4) / (drawing.width + 2 * pad);
    const high = (element.clientHeight - below) / (drawing.height + 2 * pad);
    // Its whole width; its whole height if little is missing.
    setZoom(Math.min(1, Math.max(0.6, fit), high > 0.7 ? high : 1));
    requestAnimationFrame(() => (element.scrollLeft = (element.scrollWidth - element.clientWidth) / 2));
  }, [nodes.length === 0, drawing.width]);
  const toggle = (key: string): void => {
    const next = new Set(folded);
    if (!next.delete(key)) next.add(key);
    setFolded(next);
  };
  const larger = (is: boolean): void => setZoom((before) => Math.min(2, Math.max(0.4, before + (is ? 0.2 : -0.2))));
  usePan(port, larger);
  const isSeen = (y: number, height: number): boolean => y + height >= view.top && y <= view.bottom;
  return (
    <div class={`graph ${given ? "" : "stateless"}`}>
      <div class="port" ref={port} tabIndex={0} role="group" aria-label={label}>
        <svg
          width={(drawing.width + 2 * pad) * zoom}
          height={(drawing.height + 2 * pad) * zoom}
          viewBox={`${-pad} ${-pad} ${drawing.width + 2 * pad} ${drawing.height + 2 * pad}`}
        >
          {drawing.edges
            .filter((edge) => isSeen(edge.points[0]?.[1] ?? 0, 60))
            .map((edge, index) => (
              <polyline key={index} class={`edge ${edge.to && look(edge.to).kind !== "none" ? "taken" : ""}`} points={edge.points.map((point) => point.join(",")).join(" ")} />
            ))}
          {drawing.lanes
            .filter((lane) => isSeen(lane.y, 20))
            .map((lane) => (
              <text key={`${lane.x} ${lane.y}`} class="lane" x={lane.x + lane.width / 2 + 6} y={lane.y + 13}>
                {middle(lane.text, 22)}
              </text>
            ))}
          {drawing.placed
            .filter((each) => isSeen(each.y, each.height))
            .map((each) => (
              <StepBox key={each.node.key} placed={each} look={look(each.node.key)} undo={look(undoOf(each.node.key))} isSelected={selected === each.node.key} select={select} toggle={toggle} isFolded={folded.has(each.node.key)} hasState={given !== undefined} />
            ))}
        </svg>
      </div>
      <div class="zoom">
        <button type="button" class="bare" onClick={() => larger(false)} aria-label="Smaller">
          −
        </button>
        <button type="button" class="bare small number" onClick={() => setZoom(1)} aria-label={`${Math.round(zoom * 100)} %, go to full size`}>
          {Math.round(zoom * 100)} %
        </button>
        <button type="button" class="bare" onClick={() => larger(true)} aria-label="Larger">
          +
        </button>
      </div>
    </div>
  );
}

function stateless(): Look {
  return { kind: "none", text: "" };
}

/** Returns the text of the mark of a compensation: by what, in which state, and for how long. */
export function undoName({ name, undo: work }: Node, undo: Look, hasState: boolean): string {
  const by = work ? `compensated by ${work}` : "compensated by its workflow";
  return [`${name}: ${by}`, hasState && word(undo.kind), undo.text].filter(Boolean).join(", ");
}

function containers(nodes: readonly Node[]): Set<string> {
  return new Set(nodes.filter((node) => node.children.length > 0).map((node) => node.key));
}

/** The part of the drawing that its port shows, with some more around it. */
function useView(port: { current: HTMLDivElement | null }, drawing: Drawing, zoom: number): { top: number; bottom: number } {
  const [view, setView] = useState({ top: -100, bottom: 3000 });
  useEffect(() => {
    const element = port.current;
    if (!element) return;
    const measure = (): void => {
      const top = Math.floor(element.scrollTop / zoom / 200) * 200 - 400;
      setView((before) => (before.top === top ? before : { top, bottom: top + element.clientHeight / zoom + 1000 }));
    };
    measure();
    element.addEventListener("scroll", measure, { passive: true });
    return () => element.removeEventListener("scroll", measure);
  }, [drawing, zoom]);
  return view;
}

interface BoxProps {
  placed: Placed;
  look: Look;
  /** Look of its compensation. */
  undo: Look;
  isSelected: boolean;
  isFolded: boolean;
  hasState: boolean;
  select: ((key: string) => void) | undefined;
  toggle: (key: string) => void;
}

function StepBox({ placed, look, undo, isSelected, isFolded, hasState, select, toggle }: BoxProps) {
  const { node, x, y, width, height, as, inside } = placed;
  const isContainer = as === "bar" || as === "frame";
  const press = (event: KeyboardEvent, key = node.key): void => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    select?.(key);
  };
  const left = hasState ? 28 : 12;
  const shown = middle(node.name, isContainer ? Math.max(10, Math.floor((width - 110) / 7)) : Math.floor((width - left - 8) / 6.8));
  const whole = [typeWord(node.type), node.calls, inside > 0 ? `${inside} inside` : ""].filter(Boolean).join(" · ");
  const room = Math.floor((width - left - 14 - look.text.length * 6) / 6);
  const isRoomy = left + shown.length * 6.8 + typeWord(node.type).length * 6 + look.text.length * 6 + 52 <= width;
  const sub = isContainer ? (isRoomy ? typeWord(node.type) : "") : ([whole, node.calls || typeWord(node.type)].find((each) => each.length <= room) ?? middle(node.calls || whole, room));
  // What is seen comes first, so that it can be said to be clicked; then what is only drawn.
  const name = [`${shown} ${sub} ${look.text}`.trim(), hasState && word(look.kind), shown !== node.name && node.name, sub !== whole && whole].filter(Boolean).join(", ");
  return (
    <g transform={`translate(${x} ${y})`} class={`step ${look.kind} as-${as} ${isSelected ? "selected" : ""}`}>
      {as === "frame" && <rect class="around" width={width} height={height} rx={6} />}
      {as === "bar" && <path class="bar" d={`M0 29H${width}M0 ${height}H${width}`} />}
      <g
        class="hit"
        role={select ? "button" : "img"}
        // attributes of SVG have cases
        tabindex={select ? 0 : undefined}
        aria-label={name}
        aria-pressed={select ? isSelected : undefined}
        onClick={() => select?.(node.key)}
        onKeyDown={(event) => press(event)}
      >
        <rect class="ground" width={width} height={isContainer ? 28 : height} rx={5} />
        {hasState && <MarkIn kind={look.kind} x={10} y={8} />}
        <text class="name" x={left} y={18}>
          {shown}
          {isContainer && (
            <tspan class="sub" dx={8}>
              {" "}
              {sub}
            </tspan>
          )}
        </text>{" "}
        {!isContainer && (
          <text class="sub" x={left} y={34}>
            {sub}
          </text>
        )}{" "}
        {look.text && (
          <text class="sub end" x={width - (node.children.length > 0 ? 30 : 10)} y={isContainer ? 18 : 34}>
            {look.text}
          </text>
        )}
      </g>
      {as === "box" && (node.undo !== "" || undo.kind !== "none") && (
        <g
          class={`undo ${undo.kind}`}
          role={select ? "button" : "img"}
          tabindex={select ? 0 : undefined}
          aria-label={undoName(node, undo, hasState)}
          transform={`translate(${width - 26} -6)`}
          onClick={() => select?.(undoOf(node.key))}
          onKeyDown={(event) => press(event, undoOf(node.key))}
        >
          <title>{undoName(node, undo, hasState)}</title>
          <rect width={hasState && undo.kind !== "none" ? 34 : 20} height={18} rx={9} />
          <text x={5} y={13}>
            ↩
          </text>
          {hasState && undo.kind !== "none" && <MarkIn kind={undo.kind} x={17} y={3} />}
        </g>
      )}
      {node.children.length > 0 && (
        <g
          class="folder"
          role="button"
          tabindex={0}
          aria-expanded={!isFolded}
          aria-label={`${isFolded ? "Unfold" : "Fold"} ${node.name}`}
          transform={`translate(${width - 24} 6)`}
          onClick={() => toggle(node.key)}
          onKeyDown={(event) => {
            if (event.key === "Enter" || event.key === " ") {
              event.preventDefault();
              toggle(node.key);
            }
          }}
        >
          <rect width={18} height={18} rx={3} />
          <path d={isFolded ? "M5 9h8M9 5v8" : "M5 9h8"} />
        </g>
      )}
    </g>
  );
}
