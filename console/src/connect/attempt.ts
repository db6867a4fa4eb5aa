import { send } from "../api/client.ts";
import { refusal } from "../api/error.ts";
import { parseJson, writeJson } from "../lib/json.ts";
import type { Try } from "./snippets.ts";

/** Letters of an answer that are shown. */
const lettersMax = 2000;

export interface Answer {
  status: number;
  ms: number;
  text: string;
  /** Part of it that is shown, in words; empty if all of it is. */
  cut: string;
  /** The execution that was started. */
  executionId: string | null;
}

/** Makes the request, and shows the answer as it comes. What is not shown of a stream is not read. */
export async function attempt(call: Try, signal: AbortSignal, show: (answer: Answer) => void): Promise<void> {
  const from = performance.now();
  const response = await send(call.method, call.path, { body: call.body, headers: call.headers ?? {}, signal });
  if (!response.ok) throw await refusal(response);
  const answered = (text: string, cut: string): void => show({ status: response.status, ms: performance.now() - from, text, cut, executionId: response.headers.get("x-execution-id") });
  if ((response.headers.get("content-type") ?? "").includes("application/json")) {
    const text = pretty(await response.text());
    answered(shorten(text), text.length > lettersMax ? `the first ${lettersMax} of ${text.length} letters` : "");
    return;
  }
  let text = "";
  for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += part;
    answered(shorten(text), text.length > lettersMax ? `the first ${lettersMax} letters` : "");
    if (text.length > lettersMax) return;
  }
}

function shorten(text: string): string {
  return text.length > lettersMax ? `${text.slice(0, lettersMax)}…` : text;
}

function pretty(text: string): string {
  try {
    return writeJson(parseJson(text), 2);
  } catch {
    return text;
  }
}
