import { useState } from "preact/hooks";
import type { Ask } from "../api/types.ts";
import { me } from "../api/permissions.ts";
import { actor } from "../lib/settings.ts";
import { ActDialog, type Call, CopyCalls, useAct, whyNot } from "../parts/Act.tsx";
import { Problem } from "../parts/Problem.tsx";
import { Until } from "../parts/Time.tsx";

/** Tells others that one is at it, and hands it on. */
export function Claim({ ask, changed }: { ask: Ask; changed: () => void }) {
  const { run, error, isBusy } = useAct<unknown>(changed);
  const [assigning, setAssigning] = useState(false);
  const mine = ask.claimedBy !== null && ask.claimedBy === me();
  const path = `/inbox/${encodeURIComponent(ask.askId)}`;
  const options = actor();
  const next: Call = ask.claimedBy === null ? { method: "POST", path: `${path}/claim`, body: { for: "30m", options } } : { method: "POST", path: `${path}/release`, body: { options } };
  return (
    <div class="actions">
      {ask.claimedBy === null ? (
        <button type="button" class="button" disabled={isBusy || whyNot(next.path) !== ""} title={whyNot(next.path) || "Others see that you are about to answer"} onClick={() => void run(next)}>
          Claim for 30 min
        </button>
      ) : (
        <span>
          <bdi>{mine ? "You are" : `${ask.claimedBy} is`}</bdi> about to answer
          {ask.claimedUntil && (
            <>
              , <Until at={ask.claimedUntil} />
            </>
          )}
          .
        </span>
      )}
      {ask.claimedBy !== null && (
        <button type="button" class="button" disabled={isBusy || whyNot(next.path) !== ""} title={whyNot(next.path)} onClick={() => void run(next)}>
          Release
        </button>
      )}
      <button type="button" class="button" disabled={whyNot(`${path}/assign`) !== ""} title={whyNot(`${path}/assign`)} onClick={() => setAssigning(true)}>
        Ask others
      </button>
      <CopyCalls calls={() => [next]} label={ask.claimedBy === null ? "Copy the claim as curl" : "Copy the release as curl"} class="bare small" />
      {error && <Problem error={error} />}
      {assigning && (
        <Assign
          ask={ask}
          path={`${path}/assign`}
          close={() => setAssigning(false)}
          done={() => {
            setAssigning(false);
            changed();
          }}
        />
      )}
    </div>
  );
}

function Assign({ ask, path, close, done }: { ask: Ask; path: string; close: () => void; done: () => void }) {
  const [text, setText] = useState(ask.to.join("\n"));
  const to = text.split(/[\n,]/).map((line) => line.trim()).filter((line) => line !== "");
  const wrong = to.filter((each) => !/^(user|role):.+/.test(each) && each !== "!self");
  return (
    <ActDialog title="Ask others" verb="Ask them" call={wrong.length === 0 ? { method: "POST", path, body: { to, options: actor() } } : null} close={close} done={done}>
      <p class="quiet">Those here are asked in place of those before. Reminders stay as they are.</p>
      <div class="field">
        <label for="to">Who is asked, one per line</label>
        <textarea id="to" class="code" rows={4} value={text} placeholder="everyone who sees it" onInput={(event) => setText(event.currentTarget.value)} />
        <p class="hint">
          <code>user:lea</code>, <code>role:support</code>, or <code>!self</code> for everyone but who started it. Nothing asks everyone again.
        </p>
        <p class="fault">{wrong.length > 0 && `Neither a user nor a role: ${wrong.join(", ")}`}</p>
      </div>
    </ActDialog>
  );
}
