/** Tokens of people, for servers that check them by a secret. */

import { createHmac } from "node:crypto";

export const secret = "only-for-this-test-0123456789abcdef";

export function tokenOf(sub: string, roles: string[], seconds = 3600): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${part({ alg: "HS256", typ: "JWT" })}.${part({ sub, roles, exp: Math.floor(Date.now() / 1000) + seconds })}`;
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
}
