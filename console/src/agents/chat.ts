import { signal, type Signal } from "@preact/signals";
import { get, post, send as request } from "../api/client.ts";
import { ApiError, refusal } from "../api/error.ts";
import { asError } from "../api/resource.ts";
import { frames } from "../api/sse.ts";
import { parseJson } from "../lib/json.ts";
import type { Call } from "../parts/Act.tsx";
import { type Answer, answering, type ChatFrame, type Message, questionIn, receive, stopped, stored, unanswered } from "./messages.ts";

/** Generations that are looked through for those without an answer. */
const historyRead = 20;

/** Milliseconds between attempts to find a lost answer. */
const pauses = [500, 1000, 2000, 4000, 8000, 15_000, 30_000];

/** Frames that are kept to be looked at. */
const rawMax = 500;

export interface Raw {
  /** Milliseconds after the request. */
  at: number;
  frame: ChatFrame;
}

/** Duration of a turn by this browser's clock, in milliseconds. */
export interface Timing {
  firstWord: number | null;
  whole: number | null;
}

/** A conversation with an agent. */
export class Chat {
  messages: Signal<readonly Message[]> = signal([]);
  raw: Signal<readonly Raw[]> = signal([]);
  timings: Signal<ReadonlyMap<string, Timing>> = signal(new Map());
  error: Signal<ApiError | null> = signal(null);
  isBusy: Signal<boolean> = signal(false);
  isRead: Signal<boolean> = signal(false);
  private running: AbortController | null = null;
  private generationId = "";
  private isClosed = false;
  private isWorking = false;

  constructor(
    readonly agentId: string,
    readonly conversationId: string,
    /** False for an agent that stores no conversations: then each request has all messages. */
    readonly isStored: boolean,
    /** User of the conversation, on a server without tokens. */
    private readonly user: { userId?: string },
  ) {}

  /** Reads what is stored and attaches to an answer that is under way. */
  async open(): Promise<void> {
    if (this.isStored && !begun.has(this.conversationId)) {
      await this.load();
      this.isRead.value = true;
      if (!(await this.attach()) && this.isWorking) void this.recover();
    }
    this.isRead.value = true;
  }

  /** Reads what is stored; false if it cannot be read. */
  private async load(): Promise<boolean> {
    const query = { agentId: this.agentId, ...this.user };
    const path = { id: this.conversationId };
    try {
      // A conversation begins with its first answer; until then there is none.
      const none = (error: unknown): { messages: [] } => {
        if (asError(error).status === 404) return { messages: [] };
        throw error;
      };
      const { messages } = await get("/api/memory/conversations/{id}/messages", { path, query }).catch(none);
      const known = stored(messages);
      // Without the history only what has no answer is missing.
      const history = await get("/agents/{id}/history", { path: { id: this.agentId }, query: { limit: historyRead } }).catch(() => null);
      // What is being answered meanwhile is newer than what was read.
      if (this.running) return false;
      const entries = history?.entries ?? [];
      this.isWorking = entries.some((entry) => entry.conversationId === this.conversationId && entry.status === "working");
      this.messages.value = [...stopped(known, entries), ...unanswered(known, entries, this.conversationId)];
      return true;
    } catch (error) {
      this.error.value = asError(error);
      return false;
    }
  }

  /**
   * Reads the conversation again when the server is back, and attaches to the answer if that goes on. Just after a
   * restart an answer that it ended still counts as being written.
   */
  private async recover(): Promise<void> {
    for (const pause of pauses) {
      await new Promise((resolve) => setTimeout(resolve, pause));
      if (this.isClosed || this.running) return;
      if (this.isStored && (await this.load())) {
        this.error.value = null;
        if ((await this.attach()) || !this.isWorking) return;
      }
    }
  }

  /** Attaches to the answer under way; false if there is none. A conversation that was left meanwhile is not followed. */
  private async attach(): Promise<boolean> {
    if (this.isClosed || this.running) return true;
    const user = this.user.userId;
    const url = `/agents/${encodeURIComponent(this.agentId)}/chat/${encodeURIComponent(this.conversationId)}/stream${user ? `?userId=${encodeURIComponent(user)}` : ""}`;
    return this.stream("GET", url, undefined, true);
  }

  async ask(text: string): Promise<void> {
    begun.delete(this.conversationId);
    const { path, body } = this.callOf(text);
    this.messages.value = [...this.messages.value, questionOf(text)];
    await this.stream("POST", path, body, false);
  }

  /** The call that asks this: of an agent that stores nothing, with what was said before. */
  callOf(text: string): Call {
    // A page that is loaded again finds the answer that is under way.
    const options = { conversationId: this.conversationId, resumable: true, ...this.user };
    const all = [...this.messages.value, questionOf(text)];
    const body = this.isStored ? { input: text, options } : { messages: all.map(plain), options: this.user };
    return { method: "POST", path: this.path(), body };
  }

  /** Answers calls that wait; once all have answers, the message goes on. */
  async answer(message: Message, answers: ReadonlyMap<string, Answer>): Promise<void> {
    await this.stream("POST", this.path(), { id: this.conversationId, messages: [answering(message, answers)], options: { resumable: true, ...this.user } }, false);
    // An answer of somebody else was first: what is stored tells.
    if (this.error.value?.status === 409) await this.load();
  }

  /** Ends the answer under way: its client alone would only stop to listen. */
  async stop(): Promise<void> {
    const id = this.generationId;
    if (!id) return this.running?.abort();
    // The stream says that it was stopped, and ends.
    await post("/agents/{id}/generations/{generationId}/cancel", { path: { id: this.agentId, generationId: id }, body: {} }).catch((error: unknown) => {
      this.error.value = asError(error);
      this.running?.abort();
    });
  }

  close(): void {
    this.isClosed = true;
    this.running?.abort();
  }

  /** Shows the question of the answer under way: it is stored only when the answer is. */
  private async showQuestion(): Promise<void> {
    const id = this.generationId;
    if (!id || this.messages.value.some((message) => message.id === id || message.id === `${id}-0`)) return;
    const generation = await get("/agents/{id}/generations/{generationId}", { path: { id: this.agentId, generationId: id } }).catch(() => null);
    const text = questionIn(generation?.input);
    if (text) this.messages.value = [...this.messages.value, { id: `${id}-0`, role: "user", parts: [{ type: "text", id: "", text }] }];
  }

  private path(): string {
    return `/agents/${encodeURIComponent(this.agentId)}/chat`;
  }

  private async stream(method: string, url: string, body: unknown, attaching: boolean): Promise<boolean> {
    const controller = new AbortController();
    // A question that is asked ends the search for an answer under way: one answer is shown once.
    this.running?.abort();
    this.running = controller;
    if (!attaching) this.isBusy.value = true;
    this.error.value = null;
    const from = Date.now();
    let id = "";
    let isWhole = false;
    try {
      const response = await request(method, url, { body, signal: controller.signal });
      if (attaching && (response.status === 204 || response.status === 404)) return false;
      if (!response.ok) throw await refusal(response);
      this.isBusy.value = true;
      this.generationId = response.headers.get("x-generation-id") ?? "";
      if (attaching) await this.showQuestion();
      for await (const { data } of frames(response)) {
        if (data === "[DONE]") {
          isWhole = true;
          break;
        }
        const frame = parseJson(data) as ChatFrame;
        // What is attached to is told from its start: a part of it may be stored already.
        if (attaching && frame.type === "start") this.messages.value = this.messages.value.filter((message) => message.id !== frame.messageId);
        if (frame.type === "start") id = frame.messageId ?? "";
        this.take(frame, id, Date.now() - from, attaching);
      }
      if (!isWhole) throw new ApiError("The connection ended before the answer did. The page looks for it", 0, "unreachable", "");
    } catch (error) {
      if (!controller.signal.aborted) this.error.value = asError(error);
    } finally {
      if (this.running === controller) {
        this.isBusy.value = false;
        this.running = null;
        this.generationId = "";
      }
    }
    if (id && !isWhole && !controller.signal.aborted) void this.recover();
    return true;
  }

  private take(frame: ChatFrame, id: string, at: number, attaching: boolean): void {
    this.messages.value = receive(this.messages.value, frame);
    this.raw.value = [...this.raw.value, { at, frame }].slice(-rawMax);
    if (attaching) return;
    const known = this.timings.value.get(id) ?? { firstWord: null, whole: null };
    if (frame.type === "text-delta" && known.firstWord === null) this.timings.value = new Map(this.timings.value).set(id, { ...known, firstWord: at });
    if (frame.type === "finish") this.timings.value = new Map(this.timings.value).set(id, { ...known, whole: at });
  }
}

function questionOf(text: string): Message {
  return { id: `local-${Date.now()}`, role: "user", parts: [{ type: "text", id: "", text }] };
}

function plain(message: Message): object {
  return { role: message.role, parts: message.parts.filter((part) => part.type === "text").map((part) => ({ type: "text", text: part.type === "text" ? part.text : "" })) };
}

/** Conversations that begin in this page: the server does not know them before their first message. */
const begun = new Set<string>();

/** An id for a new conversation. Pages without encryption have no `randomUUID`. */
export function newConversation(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  const id = `chat-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  begun.add(id);
  return id;
}
