import { signal, type Signal } from "@preact/signals";
import { get, post, send as request } from "../api/client.ts";
import { type ApiError, refusal } from "../api/error.ts";
import { asError } from "../api/resource.ts";
import { frames } from "../api/sse.ts";
import type { Call } from "../parts/Act.tsx";
import { type Answer, answering, type ChatFrame, type Message, receive, stored } from "./messages.ts";

/** Frames that are kept to be looked at. */
const rawMax = 500;

export interface Raw {
  /** Milliseconds after the request. */
  at: number;
  frame: ChatFrame;
}

/** How long a turn took, by this browser's clock. */
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

  constructor(
    readonly agentId: string,
    readonly conversationId: string,
    /** False for an agent that stores no conversations: then each request has all messages. */
    readonly isStored: boolean,
    /** Whose conversation it is, on a server without tokens. */
    private readonly user: { userId?: string },
  ) {}

  /** Reads what is stored and attaches to an answer that is under way. */
  async open(): Promise<void> {
    if (this.isStored && !begun.has(this.conversationId)) {
      await this.load();
      await this.attach();
    }
    this.isRead.value = true;
  }

  private async load(): Promise<void> {
    const query = { agentId: this.agentId, ...this.user };
    try {
      const { messages } = await get("/api/memory/conversations/{id}/messages", { path: { id: this.conversationId }, query });
      this.messages.value = stored(messages);
    } catch (error) {
      // A conversation begins with its first message; until then there is none.
      if (asError(error).status !== 404) this.error.value = asError(error);
    }
  }

  private async attach(): Promise<void> {
    const user = this.user.userId;
    const url = `/agents/${encodeURIComponent(this.agentId)}/chat/${encodeURIComponent(this.conversationId)}/stream${user ? `?userId=${encodeURIComponent(user)}` : ""}`;
    await this.stream("GET", url, undefined, true);
  }

  async ask(text: string): Promise<void> {
    begun.delete(this.conversationId);
    const { path, body } = this.callOf(text);
    this.messages.value = [...this.messages.value, questionOf(text)];
    await this.stream("POST", path, body, false);
  }

  /** The call that asks this: of an agent that stores nothing, with what was said before. */
  callOf(text: string): Call {
    const options = { conversationId: this.conversationId, ...this.user };
    const all = [...this.messages.value, questionOf(text)];
    const body = this.isStored ? { input: text, options } : { messages: all.map(plain), options: this.user };
    return { method: "POST", path: this.path(), body };
  }

  /** Answers calls that wait; once all have answers, the message goes on. */
  async answer(message: Message, answers: ReadonlyMap<string, Answer>): Promise<void> {
    await this.stream("POST", this.path(), { id: this.conversationId, messages: [answering(message, answers)], options: this.user }, false);
    // An answer of somebody else was first: what is stored tells.
    if (this.error.value?.status === 409) await this.load();
  }

  /** Ends the answer under way: its client alone would only stop to listen. */
  async stop(): Promise<void> {
    const id = this.generationId;
    this.running?.abort();
    if (!id) return;
    await post("/agents/{id}/generations/{generationId}/cancel", { path: { id: this.agentId, generationId: id }, body: {} }).catch((error: unknown) => (this.error.value = asError(error)));
  }

  close(): void {
    this.running?.abort();
  }

  /** What the answer under way was asked: it is stored when the answer is. */
  private async showQuestion(): Promise<void> {
    const id = this.generationId;
    if (!id || this.messages.value.some((message) => message.id === id || message.id === `${id}-0`)) return;
    const generation = await get("/agents/{id}/generations/{generationId}", { path: { id: this.agentId, generationId: id } }).catch(() => null);
    if (typeof generation?.input !== "string") return;
    this.messages.value = [...this.messages.value, { id: `${id}-0`, role: "user", parts: [{ type: "text", id: "", text: generation.input }] }];
  }

  private path(): string {
    return `/agents/${encodeURIComponent(this.agentId)}/chat`;
  }

  private async stream(method: string, url: string, body: unknown, attaching: boolean): Promise<void> {
    const controller = new AbortController();
    this.running = controller;
    if (!attaching) this.isBusy.value = true;
    this.error.value = null;
    const from = Date.now();
    let id = "";
    try {
      const response = await request(method, url, { body, signal: controller.signal });
      if (attaching && (response.status === 204 || response.status === 404)) return;
      if (!response.ok) throw await refusal(response);
      this.isBusy.value = true;
      this.generationId = response.headers.get("x-generation-id") ?? "";
      if (attaching) await this.showQuestion();
      for await (const { data } of frames(response)) {
        if (data === "[DONE]") break;
        const frame = JSON.parse(data) as ChatFrame;
        // What is attached to is told from its start: a part of it may be stored already.
        if (attaching && frame.type === "start") this.messages.value = this.messages.value.filter((message) => message.id !== frame.messageId);
        if (frame.type === "start") id = frame.messageId ?? "";
        this.take(frame, id, Date.now() - from, attaching);
      }
    } catch (error) {
      if (!controller.signal.aborted) this.error.value = asError(error);
    } finally {
      if (this.running === controller) {
        this.isBusy.value = false;
        this.running = null;
        this.generationId = "";
      }
    }
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
