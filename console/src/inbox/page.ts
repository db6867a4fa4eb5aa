import { asSchema } from "../schema/schema.ts";

/** A page that an MCP server asks a person to open. */
export interface AskedPage {
  address: string;
  /** Host and port of the address, as browsers read them: letters of other scripts are encoded. */
  host: string;
  /** False for `http:`. */
  isEncrypted: boolean;
  /** Host of the MCP server, if that is another one. */
  server: string | undefined;
}

/** The answers to such a question. */
export const done = "done";
export const declined = "declined";

/** Form in which versions before `openPage` wrote it: questions that they stored are still open. */
const written = /^Open (\S+) \(at [^\s;)]+(?:; the server is at ([^)]+))?\)\. Then answer/;

/** The page of a question, which the schema of its answer names. */
export function pageOf(schema: unknown): AskedPage | null {
  const { enum: values, description, openPage } = asSchema(schema) ?? {};
  if (JSON.stringify(values) !== JSON.stringify([done, declined])) return null;
  const [given, server] = openPage === undefined ? (written.exec(textOf(description))?.slice(1) ?? []) : [textOf(openPage?.url), textOf(openPage?.serverHost)];
  const url = given ? parsed(given) : null;
  return url && { address: url.href, host: url.host, isEncrypted: url.protocol === "https:", server: server || undefined };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** An address of a page; null for what is none, and for other schemes, which could run something. */
function parsed(text: string): URL | null {
  try {
    const url = new URL(text);
    return /^https?:$/.test(url.protocol) && url.host !== "" ? url : null;
  } catch {
    return null;
  }
}
