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

const written = /^Open (\S+) \(at [^\s;)]+(?:; the server is at ([^)]+))?\)\. Then answer/;

/** The page of a question, of which the schema of the answer has the whole address. */
export function pageOf(schema: unknown): AskedPage | null {
  const { enum: values, description } = asSchema(schema) ?? {};
  if (JSON.stringify(values) !== JSON.stringify([done, declined])) return null;
  const [, given, server] = (typeof description === "string" && written.exec(description)) || [];
  const url = given ? parsed(given) : null;
  return url && { address: url.href, host: url.host, isEncrypted: url.protocol === "https:", server };
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
