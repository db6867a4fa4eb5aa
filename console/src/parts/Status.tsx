/** State of something, in the words of the console. */
export type Kind =
  | "running" | "waiting" | "sleeping" | "held" | "retrying" | "completed" | "failed" | "cancelled" | "skipped" | "none";

const words: Record<Kind, string> = {
  running: "running",
  waiting: "waiting",
  sleeping: "sleeping",
  held: "suspended",
  retrying: "retrying",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
  skipped: "skipped",
  none: "not reached",
};

/** Paths in a box of 12 by 12. Each kind has a shape of its own, so that no one needs the colour. */
const shapes: Record<Kind, string> = {
  running: "M6 1.5A4.500 4.500 0 1 1 1.500 6",
  waiting: "M3.500 6.500V3.200M5.200 6V2M6.900 6V2.200M8.600 6.500V3.500M8.600 6.500V8c0 1.500-1 2.500-2.500 2.500C4.300 10.500 3.700 9.700 2 7.200",
  sleeping: "M6 1.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9zM6 3.500V6l1.800 1.200",
  held: "M4 2.500v7M8 2.500v7",
  retrying: "M10 6A4 4 0 1 1 8.500 2.900M8.700 1v2.200H6.500",
  completed: "M2 6.300 4.800 9 10 3",
  failed: "M2.500 2.500l7 7M9.500 2.500l-7 7",
  cancelled: "M2 6h8",
  skipped: "M2.500 3 6 6 2.500 9M6.500 3 10 6 6.500 9",
  none: "M6 5.500v1",
};

export function word(kind: Kind): string {
  return words[kind];
}

export function Mark({ kind }: { kind: Kind }) {
  return (
    <svg class={`mark ${kind}`} viewBox="0 0 12 12" aria-hidden="true">
      <path d={shapes[kind]} />
    </svg>
  );
}

/** For drawings, which cannot hold HTML. */
export function MarkIn({ kind, x, y }: { kind: Kind; x: number; y: number }) {
  return (
    <g transform={`translate(${x} ${y})`} class={`mark ${kind}`}>
      <path d={shapes[kind]} />
    </g>
  );
}

export function Status({ kind, text }: { kind: Kind; text?: string }) {
  return (
    <span class={`status ${kind}`}>
      <Mark kind={kind} />
      {text ?? words[kind]}
    </span>
  );
}

interface Shown {
  status: string;
  suspension?: { pause?: unknown; id?: string; payload?: unknown; deadline?: unknown } | undefined;
  suspensions?: { pause?: unknown }[] | undefined;
}

/**
 * The kind of an execution in a list or a state. The API calls both a wait for a person and a pause
 * `suspended`; only a pause names who caused it.
 */
export function kindOf({ status, suspension }: Shown): Kind {
  switch (status) {
    case "running":
    case "working":
      return "running";
    case "suspended":
      return suspension?.pause ? "held" : "waiting";
    case "completed":
      return "completed";
    case "error":
      return "failed";
    case "cancelled":
      return "cancelled";
    default:
      return "none";
  }
}
