import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { token } from "./auth.ts";
import { ApiError, isRefused } from "./error.ts";

export interface Resource<T> {
  data: T | undefined;
  error: ApiError | undefined;
  /** Time at which `data` was read, in milliseconds since 1970; 0 before that. */
  at: number;
  loading: boolean;
  reload: () => void;
}

/**
 * Reads something when `keys` or `version` change. With another version it is the same thing, and what was read
 * stays until it is read again, also after an error. Data of other keys never stays. With another token it is read
 * again as well.
 */
export function useResource<T>(read: (signal: AbortSignal) => Promise<T>, keys: readonly unknown[], version: unknown = ""): Resource<T> {
  const [state, setState] = useState<Omit<Resource<T>, "reload">>({ data: undefined, error: undefined, at: 0, loading: true });
  const [round, setRound] = useState(0);
  const known = useRef<string>("");
  const key = JSON.stringify(keys);
  const isSame = known.current === key;

  useEffect(() => {
    const controller = new AbortController();
    setState((before) => (known.current === key ? { ...before, loading: true } : { data: undefined, error: undefined, at: 0, loading: true }));
    known.current = key;
    read(controller.signal).then(
      (data) => {
        if (!controller.signal.aborted) setState({ data, error: undefined, at: Date.now(), loading: false });
      },
      (error: unknown) => {
        if (controller.signal.aborted) return;
        setState((before) => ({ ...before, error: asError(error), loading: false }));
      },
    );
    return () => controller.abort();
  }, [key, round, version, token.value]);

  const reload = useCallback(() => setRound((n) => n + 1), []);
  return isSame ? { ...state, reload } : { data: undefined, error: undefined, at: 0, loading: true, reload };
}

/** A resource that is read again with every beat while the page is seen: for what the API has no subscription to. */
export function useBeating<T>(beat: number, read: (signal: AbortSignal) => Promise<T>): Resource<T> {
  const resource = useResource(read, []);
  const { error, loading, reload } = resource;
  useEffect(() => {
    // A slow answer is waited for, in place of asked for again, and a refusal stays one.
    if (!loading && !document.hidden && !isRefused(error)) reload();
  }, [beat]);
  return resource;
}

export function asError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError(error instanceof Error ? error.message : String(error), 0, "page", "");
}
