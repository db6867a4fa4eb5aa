/**
 * JSON whose whole numbers stay what they are. The server keeps 64 bits of them, and numbers of a browser are rounded
 * beyond 53.
 */

/** A whole number that a number of a browser would round, as `9007199254740993`. */
export class Long {
  constructor(readonly digits: string) {}

  /** Compares with numbers. */
  valueOf(): bigint {
    return BigInt(this.digits);
  }

  toString(): string {
    return this.digits;
  }

  /** Stands for the digits in what `writeJson` writes. */
  toJSON(): string {
    return mark + this.digits;
  }
}

/** Begin of a text that stands for a long number. It is drawn anew in each page, so that no text of a caller has it. */
const mark = `long-${crypto.getRandomValues(new Uint32Array(4)).join("-")}:`;
const marked = new RegExp(`"${mark}(-?\\d+)"`, "g");

/** Index behind a text in JSON whose letters begin at `from`. */
function endOfText(json: string, from: number): number {
  let at = from;
  while (at < json.length && json[at] !== '"') at += json[at] === "\\" ? 2 : 1;
  return at + 1;
}

/** Replaces the numbers of a JSON text. */
function withNumbers(json: string, by: (number: string) => string): string {
  const tokens = /"|-?\d[\d.eE+-]*/g;
  let replaced = "";
  let from = 0;
  for (let token = tokens.exec(json); token; token = tokens.exec(json)) {
    if (token[0] === '"') {
      tokens.lastIndex = endOfText(json, tokens.lastIndex);
      continue;
    }
    replaced += json.slice(from, token.index) + by(token[0]);
    from = tokens.lastIndex;
  }
  return replaced + json.slice(from);
}

/** The value of digits with or without a sign; null if the server would round it as well. */
export function wholeOf(digits: string): number | Long | null {
  const value = Number(digits);
  if (Number.isSafeInteger(value)) return value;
  const whole = BigInt(digits);
  return whole >= -(2n ** 63n) && whole < 2n ** 64n ? new Long(String(whole)) : null;
}

/** Parses a JSON text. `rounded` gets the whole numbers that even the server would round. */
export function parseJson(text: string, rounded: (digits: string) => void = () => undefined): unknown {
  // First as it is: what is said of a text that is no JSON names a place in it.
  const plain: unknown = JSON.parse(text);
  if (!/\d{16}/.test(text)) return plain;
  let hasLong = false;
  const replaced = withNumbers(text, (token) => {
    const whole = /^-?\d{16,}$/.test(token) ? wholeOf(token) : 0;
    if (whole === null && String(Number(token)) !== token) rounded(token);
    if (!(whole instanceof Long)) return token;
    hasLong = true;
    return `"${mark}${token}"`;
  });
  return hasLong ? JSON.parse(replaced, (_, value: unknown) => (typeof value === "string" && value.startsWith(mark) ? new Long(value.slice(mark.length)) : value)) : plain;
}

/** Writes a value as JSON, as `JSON.stringify` does, with the digits of long numbers. */
export function writeJson(value: unknown, space?: number): string {
  const text = JSON.stringify(value, null, space);
  return text?.includes(mark) ? text.replace(marked, "$1") : text;
}

/** A value that can be changed without the other one. */
export function copyOf(value: unknown): unknown {
  return parseJson(writeJson(value));
}

/** Returns true for objects and lists. */
export function hasParts(value: unknown): value is object {
  return typeof value === "object" && value !== null && !(value instanceof Long);
}
