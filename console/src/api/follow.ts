import { signal } from "@preact/signals";
import { send } from "./client.ts";
import { ApiError, refusal } from "./error.ts";
import { type Frame, frames } from "./sse.ts";

/** State of a subscription, as people read it. */
export type Link =
  | { kind: "connecting" }
  | { kind: "live" }
  | { kind: "lost"; retryAt: number; since: number }
  | { kind: "refused"; error: ApiError }
  | { kind: "ended" };

/** All subscriptions of the page, for the line at its top. */
export const links = signal<ReadonlyMap<object, Link>>(new Map());

const pauses = [1, 2, 4, 8, 15, 30];

export interface Following {
  /** The last event that was seen: the stream goes on behind it. */
  after?: string;
  onOpen?: () => void;
  /** Returns true for the last frame that there will be. */
  onFrame: (frame: Frame) => boolean | void;
}

/**
 * Subscribes to a stream until the returned function is called. A lost connection is made again behind the
 * last event. A hidden page holds no connection.
 */
export function follow(url: string, following: Following): () => void {
  const key = {};
  let after = following.after ?? "";
  let failures = 0;
  let since = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let running: AbortController | null = null;
  let over = false;

  const show = (link: Link | null): void => {
    const next = new Map(links.peek());
    if (link) next.set(key, link);
    else next.delete(key);
    links.value = next;
  };
  const finish = (link: Link): void => {
    over = true;
    show(link);
  };

  const connect = async (): Promise<void> => {
    clearTimeout(timer);
    if (over || running || document.hidden) return;
    const controller = new AbortController();
    running = controller;
    if (failures === 0) show({ kind: "connecting" });
    try {
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (after) headers["last-event-id"] = after;
      const response = await send("GET", url, { headers, signal: controller.signal });
      if (response.status === 204) return finish({ kind: "ended" });
      if (!response.ok) throw await refusal(response);
      failures = 0;
      since = 0;
      show({ kind: "live" });
      following.onOpen?.();
      for await (const frame of frames(response)) {
        if (frame.id) after = frame.id;
        if (following.onFrame(frame)) return finish({ kind: "ended" });
        if (over || controller.signal.aborted) return;
      }
      retry();
    } catch (error) {
      if (controller.signal.aborted || over) return;
      const refused = error instanceof ApiError && error.status >= 400 && error.status < 500;
      if (refused) finish({ kind: "refused", error: error as ApiError });
      else retry();
    } finally {
      if (running === controller) running = null;
      controller.abort();
    }
  };
  const retry = (): void => {
    since ||= Date.now();
    const pause = (pauses[Math.min(failures, pauses.length - 1)] ?? 30) * 1000;
    failures += 1;
    show({ kind: "lost", retryAt: Date.now() + pause, since });
    timer = setTimeout(() => void connect(), pause);
  };
  const onVisibility = (): void => {
    if (!document.hidden) return void connect();
    clearTimeout(timer);
    running?.abort();
    running = null;
  };

  document.addEventListener("visibilitychange", onVisibility);
  void connect();
  return () => {
    over = true;
    clearTimeout(timer);
    running?.abort();
    document.removeEventListener("visibilitychange", onVisibility);
    show(null);
  };
}
