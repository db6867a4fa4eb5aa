import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { send } from "../api/client.ts";
import { curl } from "../api/curl.ts";
import { type ApiError, refusal } from "../api/error.ts";
import { refusalOf } from "../api/permissions.ts";
import { asError } from "../api/resource.ts";
import { boot } from "../lib/boot.ts";
import { parseJson } from "../lib/json.ts";
import { Copy } from "./Copy.tsx";
import { Dialog } from "./Dialog.tsx";
import { Problem } from "./Problem.tsx";

/** A call that an action makes: it is sent, and shown as a command. */
export interface Call {
  method: "POST" | "DELETE" | "PATCH";
  path: string;
  body?: unknown;
  headers?: Record<string, string>;
}

/** State of an action. What was typed stays after a refusal. */
export function useAct<T>(done: (data: T, response: Response) => void, failed: (error: ApiError) => void = () => undefined): { run: (call: Call) => Promise<void>; error: ApiError | undefined; isBusy: boolean } {
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const run = async (call: Call): Promise<void> => {
    if (isBusy) return;
    setBusy(true);
    setError(undefined);
    try {
      const response = await send(call.method, call.path, { body: call.body, headers: call.headers ?? {} });
      if (!response.ok) throw await refusal(response);
      const text = await response.text();
      done((text ? (parseJson(text) as { data: T }).data : undefined) as T, response);
    } catch (failure) {
      const error = asError(failure);
      setError(error);
      failed(error);
    } finally {
      setBusy(false);
    }
  };
  return { run, error, isBusy };
}

/** Returns the reason for which an action cannot be taken here; empty if it can. The server decides. */
export function whyNot(path = "", method: Call["method"] = "POST"): string {
  return boot.readOnly ? "This console only reads" : refusalOf(method, path);
}

/** Copies the command that makes a call, or several. */
export function CopyCalls({ calls, label = "Copy as curl", class: kind = "button" }: { calls: () => Call[]; label?: string; class?: string }) {
  return <Copy text={() => calls().map((call) => curl(call.method, call.path, call.body)).join("\n")} label={label} class={kind} />;
}

/** A dialog that makes one call: its fields, the call as a command, and the refusal. */
export function ActDialog<T>({ title, verb, danger, wide, call, done, failed, close, children }: {
  title: string;
  verb: string;
  danger?: boolean;
  wide?: boolean;
  /** Null while what is typed makes no call. */
  call: Call | null;
  done: (data: T, response: Response) => void;
  failed?: (error: ApiError) => void;
  close: () => void;
  children?: ComponentChildren | ((error: ApiError | undefined) => ComponentChildren);
}) {
  const { run, error, isBusy } = useAct<T>(done, failed);
  const why = whyNot(call?.path, call?.method);
  return (
    <Dialog title={title} close={close} wide={wide ?? false}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (call && why === "") void run(call);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
        }}
      >
        {typeof children === "function" ? children(error) : children}
        {error && <Problem error={error} />}
        {why !== "" && <p class="note">{why}.</p>}
        <div class="actions">
          <button type="submit" class={`button ${danger ? "danger" : "primary"}`} disabled={!call || isBusy || why !== ""} title={why}>
            {isBusy ? `${verb}…` : verb}
          </button>
          <button type="button" class="button" onClick={close}>
            Close
          </button>
          {call && <CopyCalls calls={() => [call]} />}
        </div>
      </form>
    </Dialog>
  );
}
