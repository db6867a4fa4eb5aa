import { writeJson } from "../lib/json.ts";

/** A call as a command for a shell: what the console does, others can do. */
export function curl(method: string, path: string, body?: unknown, origin = globalThis.location?.origin ?? ""): string {
  const words = ["curl", "-s"];
  const verb = method.toUpperCase();
  if (verb !== "GET" && !(verb === "POST" && body !== undefined)) words.push("-X", verb);
  words.push(quote(origin + path));
  if (body === undefined) return words.join(" ");
  return `${words.join(" ")} \\\n  -H 'content-type: application/json' \\\n  -d ${quote(writeJson(body))}`;
}

/** Nothing but a single quote has a meaning between single quotes. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
