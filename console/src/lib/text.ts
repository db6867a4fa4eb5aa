const count = new Intl.NumberFormat("en");

export function number(value: number): string {
  return count.format(value);
}

/** `1 step`, `2 steps`. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${number(value)} ${value === 1 ? one : many}`;
}

/** Shortens in the middle, where ids are least telling. */
export function middle(text: string, max: number): string {
  if (text.length <= max) return text;
  const ends = 2 * max;
  const isLong = text.length > 2 * ends;
  const letters = Array.from(isLong ? text.slice(0, ends) : text);
  if (!isLong && letters.length <= max) return text;
  const last = isLong ? Array.from(text.slice(-ends)) : letters;
  const head = Math.ceil((max - 1) / 2);
  return `${letters.slice(0, head).join("")}…${last.slice(last.length - (max - 1 - head)).join("")}`;
}

/** The first line, and no more of it than `max` letters. */
export function firstLine(text: string, max = 200): string {
  // A letter has at most two units; what follows is not looked at, and may be many megabytes.
  const line = text.slice(0, 2 * max + 2).split(/\r?\n/, 1)[0] ?? "";
  const letters = Array.from(line);
  return letters.length > max || line.length < text.length ? `${letters.slice(0, max).join("")}…` : line;
}

export function bytes(value: number): string {
  if (value < 1000) return `${value} B`;
  if (value < 1_000_000) return `${(value / 1000).toFixed(1)} kB`;
  return `${(value / 1_000_000).toFixed(1)} MB`;
}
