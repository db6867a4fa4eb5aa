import { ApiError, refusal } from "./error.ts";
import { parseJson, writeJson } from "../lib/json.ts";
import { askForToken, authorization, token } from "./auth.ts";
import type { paths } from "./schema.ts";

export type Method = "get" | "post" | "patch" | "delete";

/** Paths that have the method. */
export type PathsOf<M extends Method> = { [P in keyof paths]: paths[P][M] extends object ? P : never }[keyof paths] & string;

type Operation<P extends keyof paths, M extends Method> = NonNullable<paths[P][M]>;

type Json<O> = O extends { responses: { 200: { content: { "application/json": infer B } } } }
  ? B
  : O extends { responses: { 201: { content: { "application/json": infer B } } } }
    ? B
    : never;

/** `data` of the answer, which the envelope brings. */
export type Data<P extends keyof paths, M extends Method> = Json<Operation<P, M>> extends { data: infer D } ? D : unknown;

type PathNames<O> = O extends { parameters: { path: infer T } } ? { path: T } : { path?: undefined };
type QueryOf<O> = O extends { parameters: { query?: infer T } } ? { query?: T } : { query?: undefined };
type BodyOf<O> = O extends { requestBody?: { content: { "application/json": infer B } } } ? { body?: B } : { body?: undefined };

export type Input<P extends keyof paths, M extends Method> = PathNames<Operation<P, M>> &
  QueryOf<Operation<P, M>> &
  BodyOf<Operation<P, M>> & { headers?: Record<string, string>; signal?: AbortSignal };

export interface Plain {
  path?: Record<string, string> | undefined;
  query?: Record<string, unknown> | undefined;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** The address of a call, with what it puts into path and query. */
export function address(path: string, input: Plain = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(input.path?.[name] ?? ""));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(input.query ?? {})) {
    const values = Array.isArray(value) ? value : [value];
    for (const each of values) if (each !== undefined && each !== null && each !== "") query.append(name, String(each));
  }
  const text = query.toString();
  return filled + (text ? `?${text}` : "");
}

/** Sends a request and, if it needs a token, asks for one and sends it again. */
export async function send(method: string, url: string, input: Plain = {}): Promise<Response> {
  for (;;) {
    const sent = token.value;
    const response = await attempt(method, url, input);
    if (response.status !== 401) return response;
    // Another request may have got a new token meanwhile.
    if (token.value === sent && !(await askForToken())) throw await refusal(response);
  }
}

async function attempt(method: string, url: string, input: Plain): Promise<Response> {
  const init: RequestInit = { method: method.toUpperCase(), headers: { ...authorization(), ...input.headers } };
  if (input.signal) init.signal = input.signal;
  if (input.body !== undefined) {
    init.body = writeJson(input.body);
    init.headers = { ...init.headers, "content-type": "application/json" };
  }
  try {
    return await fetch(url, init);
  } catch (error) {
    if (input.signal?.aborted) throw error;
    throw new ApiError("No answer from the server", 0, "unreachable", "");
  }
}

/** Calls a route and returns `data` of its answer, with the answer itself for its headers. */
export async function callFully<P extends PathsOf<M>, M extends Method>(
  method: M,
  path: P,
  input: Input<P, M>,
): Promise<{ data: Data<P, M>; response: Response }> {
  const plain = input as Plain;
  const response = await send(method, address(path, plain), plain);
  if (!response.ok) throw await refusal(response);
  const text = await response.text();
  const body = text ? (parseJson(text) as { data: Data<P, M> }) : { data: undefined as Data<P, M> };
  return { data: body.data, response };
}

export async function call<P extends PathsOf<M>, M extends Method>(method: M, path: P, input: Input<P, M>): Promise<Data<P, M>> {
  return (await callFully(method, path, input)).data;
}

export function get<P extends PathsOf<"get">>(path: P, input: Input<P, "get">): Promise<Data<P, "get">> {
  return call("get", path, input);
}

export function post<P extends PathsOf<"post">>(path: P, input: Input<P, "post">): Promise<Data<P, "post">> {
  return call("post", path, input);
}
