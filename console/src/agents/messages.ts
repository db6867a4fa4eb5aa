import type { HistoryEntry, UiMessage } from "../api/types.ts";

/** A part of a message, as the chat shows it. */
export type Part =
  | { type: "text"; id: string; text: string }
  | { type: "reasoning"; id: string; text: string }
  | { type: "file"; name: string; mediaType: string }
  | ToolPart
  | { type: "ask"; askId: string; toolCallId: string; question: string; schema: unknown };

export interface ToolPart {
  type: "tool";
  toolCallId: string;
  name: string;
  state: "writing" | "called" | "asks" | "answered" | "done" | "failed" | "refused";
  /** The arguments as they are written. */
  inputText: string;
  input?: unknown;
  output?: unknown;
  error?: string;
  askId?: string;
}

export interface Message {
  id: string;
  role: "user" | "assistant" | "system";
  parts: Part[];
  tokens?: { input: number; output: number };
  finish?: string;
  error?: string;
  isAborted?: boolean;
  /** It is not in the conversation: the agent does not see it again. */
  isLeftOut?: boolean;
}

/** Frames of a chat. Read as they come: a frame of a kind that is not known changes nothing. */
export interface ChatFrame {
  type: string;
  id?: string;
  messageId?: string;
  delta?: string;
  toolCallId?: string;
  toolName?: string;
  inputTextDelta?: string;
  input?: unknown;
  output?: unknown;
  errorText?: string;
  approvalId?: string;
  data?: { askId?: string; toolCallId?: string; question?: string; schema?: unknown };
  messageMetadata?: { finishReason?: string; usage?: { inputTokens?: number; outputTokens?: number } };
}

/** The messages after a frame of the stream. */
export function receive(messages: readonly Message[], frame: ChatFrame): readonly Message[] {
  if (frame.type === "start") {
    const id = frame.messageId ?? "";
    // A continued message keeps what it has; a resumed stream begins with its first frame.
    if (messages.some((message) => message.id === id)) return messages;
    return [...messages, { id, role: "assistant", parts: [] }];
  }
  const last = messages.at(-1);
  if (last?.role !== "assistant") return messages;
  return [...messages.slice(0, -1), change(last, frame)];
}

function change(message: Message, frame: ChatFrame): Message {
  const { parts } = message;
  const withTool = (edit: Partial<ToolPart>): Message => ({
    ...message,
    parts: parts.map((part) => (part.type === "tool" && part.toolCallId === frame.toolCallId ? { ...part, ...edit } : part)),
  });
  switch (frame.type) {
    case "text-start":
    case "reasoning-start":
      return { ...message, parts: [...parts, { type: frame.type === "text-start" ? "text" : "reasoning", id: frame.id ?? "", text: "" }] };
    case "text-delta":
    case "reasoning-delta":
      return append(message, frame.type === "text-delta" ? "text" : "reasoning", frame);
    case "tool-input-start":
      if (parts.some((part) => part.type === "tool" && part.toolCallId === frame.toolCallId)) return message;
      return { ...message, parts: [...parts, { type: "tool", toolCallId: frame.toolCallId ?? "", name: frame.toolName ?? "", state: "writing", inputText: "" }] };
    case "tool-input-delta":
      return {
        ...message,
        parts: parts.map((part) => (part.type === "tool" && part.toolCallId === frame.toolCallId ? { ...part, inputText: part.inputText + (frame.inputTextDelta ?? "") } : part)),
      };
    case "tool-input-available":
      return withTool({ state: "called", input: frame.input });
    case "tool-approval-request":
      return withTool({ state: "asks", ...(frame.approvalId ? { askId: frame.approvalId } : {}) });
    case "tool-output-available":
      return withoutAsk(withTool({ state: "done", output: frame.output }), frame.toolCallId);
    case "tool-output-error":
      return withoutAsk(withTool({ state: "failed", error: frame.errorText ?? "" }), frame.toolCallId);
    case "tool-output-denied":
      return withoutAsk(withTool({ state: "refused" }), frame.toolCallId);
    case "data-ask": {
      const { askId = "", toolCallId = "", question = "", schema } = frame.data ?? {};
      if (parts.some((part) => part.type === "ask" && part.askId === askId)) return message;
      return { ...message, parts: [...parts, { type: "ask", askId, toolCallId, question, schema }] };
    }
    case "finish":
      return finish(message, frame);
    case "abort":
      return { ...message, isAborted: true };
    case "error":
      return { ...message, error: frame.errorText ?? "" };
    default:
      return message;
  }
}

/** Adds to the newest text: ids begin anew with every turn. */
function append(message: Message, type: "text" | "reasoning", frame: ChatFrame): Message {
  const at = message.parts.findLastIndex((part) => part.type === type && part.id === frame.id);
  const part = message.parts[at];
  if (part?.type !== "text" && part?.type !== "reasoning") return message;
  return { ...message, parts: message.parts.with(at, { ...part, text: part.text + (frame.delta ?? "") }) };
}

function withoutAsk(message: Message, toolCallId: string | undefined): Message {
  return { ...message, parts: message.parts.filter((part) => part.type !== "ask" || part.toolCallId !== toolCallId) };
}

function finish(message: Message, { messageMetadata }: ChatFrame): Message {
  const usage = messageMetadata?.usage;
  return {
    ...message,
    ...(usage ? { tokens: { input: usage.inputTokens ?? 0, output: usage.outputTokens ?? 0 } } : {}),
    ...(messageMetadata?.finishReason ? { finish: messageMetadata.finishReason } : {}),
  };
}

const states: Record<string, ToolPart["state"]> = {
  "input-available": "called",
  "approval-requested": "asks",
  "approval-responded": "answered",
  "output-available": "done",
  "output-error": "failed",
  "output-denied": "refused",
};

/** Stored messages, which have the same parts in another form. */
export function stored(messages: readonly UiMessage[]): Message[] {
  return messages.map((message) => ({
    id: message.id,
    role: message.role as Message["role"],
    parts: message.parts.map((part, index) => partOf(part, index)).filter((part) => part !== null),
  }));
}

/** Stored answers of which the history of the agent knows that they were stopped. */
export function stopped(messages: readonly Message[], entries: readonly HistoryEntry[]): Message[] {
  const ids = new Set(entries.filter((entry) => entry.status === "cancelled").map((entry) => entry.id));
  return messages.map((message) => (message.role === "assistant" && ids.has(message.id) ? { ...message, isAborted: true } : message));
}

/**
 * Returns the questions that were asked in a conversation after its stored messages and never answered to the end. The
 * conversation does not have them, the history of the agent does. `entries`: the newest of that, newest first.
 */
export function unanswered(messages: readonly Message[], entries: readonly HistoryEntry[], conversationId: string): Message[] {
  const isStored = (id: string): boolean => messages.some((message) => message.id === id || message.id === `${id}-0`);
  const own = entries.filter((entry) => entry.conversationId === conversationId);
  const end = own.findIndex((entry) => isStored(entry.id));
  const newer = own.slice(0, end < 0 ? own.length : end).filter((entry) => isUnanswered(entry));
  return newer.reverse().flatMap(({ id, input, steps, status, error }): Message[] => {
    const said = steps.map((step) => step.text).filter(Boolean).join("\n\n");
    const end = status === "cancelled" ? { isAborted: true } : status === "error" ? { error: error ?? "" } : {};
    return [
      { id: `${id}-0`, role: "user", parts: [{ type: "text", id: "", text: questionIn(input) }] },
      { id, role: "assistant", parts: said ? [{ type: "text", id: "", text: said }] : [], ...(status === "working" ? {} : { isLeftOut: true }), ...end },
    ];
  });
}

function isUnanswered({ status }: HistoryEntry): boolean {
  return status === "cancelled" || status === "error" || status === "working";
}

/** The text that was asked last, of an input as callers send it. */
export function questionIn(input: unknown): string {
  if (typeof input === "string") return input;
  const last = Array.isArray(input) ? (input.at(-1) as { parts?: StoredPart[]; content?: unknown } | undefined) : undefined;
  if (typeof last?.content === "string") return last.content;
  return (last?.parts ?? []).flatMap((part) => (part.type === "text" ? [part.text ?? ""] : [])).join("\n");
}

interface StoredPart {
  type: string;
  text?: string;
  filename?: string;
  mediaType?: string;
  toolCallId?: string;
  state?: string;
  input?: unknown;
  output?: unknown;
  errorText?: string;
  approval?: { id: string };
  data?: ChatFrame["data"];
}

function partOf(given: UiMessage["parts"][number], index: number): Part | null {
  const part = given as StoredPart;
  if (part.type === "text" || part.type === "reasoning") return { type: part.type, id: `stored-${index}`, text: part.text ?? "" };
  if (part.type === "file") return { type: "file", name: part.filename ?? "file", mediaType: part.mediaType ?? "" };
  if (part.type === "data-ask") {
    const { askId = "", toolCallId = "", question = "", schema } = part.data ?? {};
    return { type: "ask", askId, toolCallId, question, schema };
  }
  if (!part.type.startsWith("tool-")) return null;
  return {
    type: "tool",
    toolCallId: part.toolCallId ?? "",
    name: part.type.slice("tool-".length),
    state: states[part.state ?? ""] ?? "called",
    inputText: "",
    input: part.input,
    ...(part.output !== undefined ? { output: part.output } : {}),
    ...(part.errorText !== undefined ? { error: part.errorText } : {}),
    ...(part.approval ? { askId: part.approval.id } : {}),
  };
}

/** The assistant's message with the answers to what it asks: sent again, it goes on. */
export function answering(message: Message, answers: ReadonlyMap<string, Answer>): object {
  const parts = message.parts.flatMap((part): object[] => {
    if (part.type === "text") return [{ type: "text", text: part.text }];
    if (part.type !== "tool") return [];
    const base = { type: `tool-${part.name}`, toolCallId: part.toolCallId, input: part.input ?? {} };
    const answer = answers.get(part.toolCallId);
    if (answer?.kind === "approval") {
      const { approved, reason } = answer;
      return [{ ...base, state: "approval-responded", approval: { id: part.askId, approved, ...(reason ? { reason } : {}) } }];
    }
    if (answer?.kind === "output") return [{ ...base, state: "output-available", output: answer.output }];
    if (part.state === "done") return [{ ...base, state: "output-available", output: part.output }];
    if (part.state === "failed") return [{ ...base, state: "output-error", errorText: part.error ?? "" }];
    if (part.state === "asks") return [{ ...base, state: "approval-requested", approval: { id: part.askId } }];
    return [{ ...base, state: "input-available" }];
  });
  return { id: message.id, role: "assistant", parts };
}

export type Answer = { kind: "approval"; approved: boolean; reason: string } | { kind: "output"; output: unknown };
