import type { WorkflowEvent } from "../api/types.ts";
import { hasParts } from "../lib/json.ts";
import type { Numbered } from "./fold.ts";

/** Letters of JSON of a value that is not kept, and of all values of an execution that are. */
export const valueMax = 1_000_000;
export const keptMax = 32_000_000;

const fields = ["output", "result", "payload", "resumeData"] as const;
type Field = (typeof fields)[number];

/** Letters of a value that a line of the list shows. */
const previewMax = 200;

/** A value that is not kept in memory: its event is read again when someone looks at it. */
export class Cut {
  constructor(
    readonly seq: number,
    readonly field: Field,
    /** Its JSON, about so many letters. */
    readonly letters: number,
    readonly preview: string,
  ) {}

  /** The value in the event that was read again. */
  of(event: WorkflowEvent): unknown {
    return event[this.field];
  }
}

/**
 * Bounds the memory for the values of events: a large one is not kept, and of the others the newest are. What
 * happened and when stays of all.
 */
export class Values {
  private kept: { numbered: Numbered; letters: number }[] = [];
  private dropped = 0;
  private letters = 0;

  /** Takes an event that came as so many letters of JSON. */
  take(numbered: Numbered, letters: number): Numbered {
    if (!fields.some((field) => numbered.event[field] !== undefined)) return numbered;
    if (letters > valueMax) {
      cut(numbered, letters);
      return numbered;
    }
    this.kept.push({ numbered, letters });
    this.letters += letters;
    while (this.letters > keptMax) {
      const oldest = this.kept[this.dropped++];
      if (!oldest) break;
      cut(oldest.numbered, oldest.letters);
      this.letters -= oldest.letters;
    }
    // What was dropped is let go in larger parts, since that moves all others.
    if (this.dropped > 1000) this.kept.splice(0, this.dropped), (this.dropped = 0);
    return numbered;
  }
}

function cut({ seq, event }: Numbered, letters: number): void {
  for (const field of fields) {
    const value = event[field];
    if (value === undefined || value instanceof Cut) continue;
    event[field] = new Cut(seq, field, letters, preview(value));
  }
}

/** The begin of a value's JSON, without making all of it. */
function preview(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, previewMax));
  if (!hasParts(value)) return String(value);
  const names = Array.isArray(value) ? "" : Object.keys(value).slice(0, 10).join(", ");
  return Array.isArray(value) ? `[ ${value.length} items ]` : `{ ${names.slice(0, previewMax)} }`;
}
