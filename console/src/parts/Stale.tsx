import type { Resource } from "../api/resource.ts";
import { Time } from "./Time.tsx";

/** Says that what is shown could not be read again, and how old it is. */
export function Stale({ of }: { of: Resource<unknown> }) {
  if (!of.error || of.data === undefined) return null;
  return (
    <p class="note stale" role="status">
      <span>
        As it was <Time at={new Date(of.at).toISOString()} />: it cannot be read again. <bdi>{of.error.message}</bdi>
        {of.error.requestId && (
          <>
            {" "}
            (request <code>{of.error.requestId}</code>)
          </>
        )}
      </span>
      <button type="button" class="bare" onClick={of.reload}>
        try again
      </button>
    </p>
  );
}
