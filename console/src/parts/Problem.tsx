import type { ComponentChildren } from "preact";
import { type ApiError, advice } from "../api/error.ts";
import { Id } from "./Id.tsx";

/** A refusal: what the server says, what to do, and the id under which its log has it. */
export function Problem({ error, retry, hrefOf, children }: {
  error: ApiError;
  retry?: (() => void) | undefined;
  /** The page of a name that may have been meant. */
  hrefOf?: (meant: string) => string;
  children?: ComponentChildren;
}) {
  const hint = advice(error);
  return (
    <div class="problem" role="alert">
      <p>
        <bdi>{error.message}</bdi>
      </p>
      {error.didYouMean && (
        <p>
          Did you mean {hrefOf ? <a href={hrefOf(error.didYouMean)}>{error.didYouMean}</a> : <b>{error.didYouMean}</b>}?
        </p>
      )}
      {hint && <p class="quiet">{hint}</p>}
      {(error.code || error.requestId) && (
        <p class="quiet small">
          {error.code && <code>{error.code}</code>}
          {error.requestId && (
            <>
              {" "}
              request <Id id={error.requestId} max={40} copy />
            </>
          )}
        </p>
      )}
      {children}
      {retry && (
        <button type="button" class="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}
