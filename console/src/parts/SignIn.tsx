import { useState } from "preact/hooks";
import { wanted } from "../api/auth.ts";
import { boot } from "../lib/boot.ts";
import { Dialog } from "./Dialog.tsx";

/** Asks for a token while requests wait for it. What was typed in the page stays. */
export function SignIn() {
  const open = wanted.value;
  const [text, setText] = useState("");
  if (!open) return null;
  const cancel = (): void => {
    setText("");
    open.give(null);
  };
  const loginUrl = boot.loginUrl && /^https?:\/\/|^\//.test(boot.loginUrl) ? boot.loginUrl : null;
  return (
    <Dialog title="This server needs a token" close={cancel}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim()) open.give(text.trim());
          setText("");
        }}
      >
        {open.wasRefused && (
          <p class="bad" role="alert">
            The server does not accept the last token, or no longer.
          </p>
        )}
        <p class="quiet">It stays in this tab, and ends with it. The request that needed it is sent again.</p>
        <div class="field">
          <label for="token">Token</label>
          <input id="token" type="password" autocomplete="off" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </div>
        <div class="actions">
          <button type="submit" class="button primary">
            Continue
          </button>
          {loginUrl && (
            <a class="button" href={loginUrl} target="_blank" rel="noopener">
              Get a token
            </a>
          )}
          <button type="button" class="button" onClick={cancel}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
