import { effect, signal, untracked } from "@preact/signals";
import { token, wanted } from "./auth.ts";
import { send } from "./client.ts";
import { ApiError, isRefused, refusal } from "./error.ts";
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

/** Servers write a line every few seconds (`limits.heartbeat`): a stream that is silent for longer than this is dead. */
const silenceMax = 120_000;

/** Time in which the head of an answer has to arrive, in milliseconds: a server, or a proxy before it, may accept and never answer. */
const headMax = 60_000;

export interface Following {
  /** The last event that was seen: the stream goes on behind it. */
  after?: string;
  onOpen?: () => void;
  /** Returns true for the last frame that there will be, and "early" for one before which others are missing. */
  onFrame: (frame: Frame) => boolean | "early" | void;
  /** Called when the server refuses: there is no other try before there is another token. */
  onRefused?: (error: ApiError) => void;
}

/**
 * Subscribes to a stream until the returned function is called. A lost connection is made again behind the
 * last event, and one of another token begins anew: another person may see other things. A hidden page holds no
 * connection.
 */
export function follow(url: string, following: Following): () => void {
  const key = {};
  let after = following.after ?? "";
  let failures = 0;
  let since = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let silence: ReturnType<typeof setTimeout> | undefined;
  let running: AbortController | null = null;
  let over = false;
  let refused = false;
  let used = token.peek();

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
    const limit = (time: number, isLate: () => void): void => {
      if (running !== controller) return;
      clearTimeout(silence);
      silence = setTimeout(isLate, time);
    };
    const drop = (): void => {
      running = null;
      controller.abort();
      retry();
    };
    const heard = (): void => limit(silenceMax, drop);
    // A person who is asked for a token may take longer than a server.
    const unanswered = (): void => (wanted.peek() ? limit(headMax, unanswered) : drop());
    limit(headMax, unanswered);
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
      heard();
      for await (const frame of frames(response, heard)) {
        const taken = following.onFrame(frame);
        if (taken === true) return finish({ kind: "ended" });
        if (over || controller.signal.aborted) return;
        // What is missing comes again behind the last frame that was taken.
        if (taken === "early") break;
        if (frame.id) after = frame.id;
      }
      retry();
    } catch (error) {
      if (controller.signal.aborted || over) return;
      if (error instanceof ApiError && isRefused(error)) {
        refused = true;
        finish({ kind: "refused", error });
        following.onRefused?.(error);
      } else retry();
    } finally {
      if (running === controller) {
        running = null;
        clearTimeout(silence);
      }
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
    if (document.hidden) leave();
    else void connect();
  };
  const leave = (): void => {
    clearTimeout(timer);
    clearTimeout(silence);
    running?.abort();
    running = null;
  };

  const onToken = (): void => {
    if (over && !refused) return;
    over = false;
    refused = false;
    failures = 0;
    leave();
    void connect();
  };

  document.addEventListener("visibilitychange", onVisibility);
  void connect();
  const unwatch = effect(() => {
    if (token.value === used || token.value === "") return;
    used = token.value;
    untracked(onToken);
  });
  return () => {
    unwatch();
    over = true;
    refused = false;
    leave();
    document.removeEventListener("visibilitychange", onVisibility);
    show(null);
  };
}
