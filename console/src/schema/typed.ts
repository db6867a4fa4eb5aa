/** Conversions of texts that people type into fields to values of a schema, and back. */

import { type Long, parseJson, wholeOf } from "../lib/json.ts";

/** The number that was typed. What is none, could mean two or would be rounded stays a text, which no number fits. */
export function asNumber(typed: string): number | Long | string {
  const text = typed.trim();
  // `1,500` is another number in other countries.
  if (/^[+-]?[1-9]\d{0,2}(,\d{3})+$/.test(text)) return typed;
  const value = Number(text.replace(",", "."));
  if (text === "" || !Number.isFinite(value) || /[.,]$/.test(text)) return typed;
  return /^[+-]?\d+$/.test(text) ? (wholeOf(text) ?? typed) : value;
}

/** Fields for a time have none for a zone: they show and take the time of this browser. What is no time is shown as it is. */
export function toInput(value: string, format: string | undefined): string {
  if (value === "" || (format !== "date-time" && format !== "time")) return value;
  const at = new Date(format === "time" ? `${day(new Date())}T${value}` : value);
  if (Number.isNaN(at.getTime())) return value;
  const clock = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":").replace(/:00$/, "");
  return format === "time" ? clock : `${day(at)}T${clock}`;
}

/** The value of a field for a text. A time of day has the offset of this browser, which the format wants. */
export function fromInput(typed: string, format: string | undefined): string {
  if (format === "time") return /^\d\d:\d\d(:\d\d)?$/.test(typed) ? `${typed.padEnd(8, ":00")}${offset(new Date())}` : typed;
  if (format !== "date-time") return typed;
  const at = new Date(typed);
  return Number.isNaN(at.getTime()) ? typed : at.toISOString();
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}

function day(at: Date): string {
  return `${String(at.getFullYear()).padStart(4, "0")}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

function offset(at: Date): string {
  const minutes = -at.getTimezoneOffset();
  const size = Math.abs(minutes);
  return minutes === 0 ? "Z" : `${minutes < 0 ? "-" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

/** Text that was typed for a value and is no JSON (yet), or would be rounded. It fits no schema, so that nothing else is sent in its place. */
export class Broken {
  constructor(
    readonly text: string,
    /** Reason for which it is not sent. */
    readonly why: string,
  ) {}

  toJSON(): string {
    return this.text;
  }
}

export function hasBroken(value: unknown): boolean {
  return value instanceof Broken || (typeof value === "object" && value !== null && Object.values(value).some(hasBroken));
}

/** The value of a JSON text; nothing for an empty one. */
export function fromJson(typed: string): unknown {
  if (typed.trim() === "") return undefined;
  const rounded: string[] = [];
  try {
    const value = parseJson(typed, (digits) => rounded.push(digits));
    return rounded[0] === undefined ? value : new Broken(typed, `has ${rounded[0]}, which would be rounded: whole numbers have up to 64 bits`);
  } catch (error) {
    return new Broken(typed, `is no JSON: ${(error as Error).message}`);
  }
}
