import { signal, type Signal } from "@preact/signals";
import { follow } from "../api/follow.ts";
import type { WorkflowEvent } from "../api/types.ts";
import { parseJson } from "../lib/json.ts";
import type { Numbered } from "./fold.ts";
import { Values } from "./values.ts";

/** Text that an agent writes while its step runs. It has no number and is not recorded. */
type Progress = ReadonlyMap<string, string>;

export interface Live {
  events: Signal<readonly Numbered[]>;
  progress: Signal<Progress>;
  /** Number of times that the stream was opened. */
  opened: Signal<number>;
  stop: () => void;
}

interface ProgressEvent {
  type: string;
  path?: string;
  from?: string;
  event?: { type: string; delta?: string };
}

/** Letters of unrecorded text that are kept of a step. */
const progressMax = 20_000;

/** Events that come at once: the record is being read, and more of it follows. */
const burst = 500;

/** A long record is folded anew with each change, so its changes reach the page in larger parts. */
function pauseOf(length: number, newest: number): number {
  if (newest >= burst) return 600;
  return length > 1000 ? 200 : 16;
}

/** Follows the events of an execution. */
export function live(workflowId: string, executionId: string): Live {
  const events = signal<readonly Numbered[]>([]);
  const progress = signal<Progress>(new Map());
  const opened = signal(0);
  let waiting: Numbered[] = [];
  let texts = new Map<string, string>();
  const values = new Values();
  let added = 0;
  // The first event of a stream follows the last one of the stream before, whatever its number.
  let isFirst = true;
  let scheduled: ReturnType<typeof setTimeout> | undefined;

  const flush = (): void => {
    scheduled = undefined;
    added = waiting.length;
    if (waiting.length > 0) events.value = [...events.value, ...waiting];
    if (texts.size > 0) progress.value = new Map([...progress.value, ...texts]);
    waiting = [];
    texts = new Map();
  };
  const last = (): number => waiting.at(-1)?.seq ?? events.peek().at(-1)?.seq ?? 0;

  const url = `/workflows/${encodeURIComponent(workflowId)}/executions/${encodeURIComponent(executionId)}/stream`;
  const stop = follow(url, {
    onOpen: () => {
      opened.value += 1;
      isFirst = true;
    },
    onFrame: ({ id, data }) => {
      const event = parseJson(data) as WorkflowEvent;
      const seq = Number(id);
      const said = (event as unknown as ProgressEvent).event;
      if ((event.type as string) === "step-progress") {
        const path = event.path ?? event.from ?? "";
        const before = texts.get(path) ?? progress.peek().get(path) ?? "";
        if (said?.type === "start") texts.set(path, "");
        if (said?.type === "text-delta") texts.set(path, (before + (said.delta ?? "")).slice(-progressMax));
      } else if (seq > last() + 1 && !isFirst) {
        // Numbers have no holes: events between were lost on the way.
        return "early";
      } else if (seq > last()) {
        isFirst = false;
        waiting.push(values.take({ seq, event }, data.length));
      }
      const isLast = event.type === "workflow-result";
      if (isLast) {
        clearTimeout(scheduled);
        flush();
        return true;
      }
      scheduled ??= setTimeout(flush, pauseOf(last(), added));
      return false;
    },
  });
  return {
    events,
    progress,
    opened,
    stop: () => {
      clearTimeout(scheduled);
      stop();
    },
  };
}
