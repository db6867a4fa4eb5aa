import { signal } from "@preact/signals";
import { Dialog } from "./Dialog.tsx";
import { views } from "./views.ts";

export const helpOpen = signal(false);

const keys: [string, string][] = [
  ["Ctrl K", "go to an execution, a workflow, an agent, an MCP server, a view or an action"],
  ["?", "this list"],
  ["j  k", "next and previous row of a list"],
  ["Enter", "open the row; in the inbox, go to the answer"],
  ["Escape", "close what is open"],
  ["←  →", "in an execution: one event back and forth"],
  ["Ctrl Enter", "send the form that has the focus"],
];

export function Help() {
  if (!helpOpen.value) return null;
  return (
    <Dialog title="Keyboard" close={() => (helpOpen.value = false)}>
      <dl class="keys">
        {[...keys, ...views.map((view): [string, string] => [`g ${view.key}`, view.name])].map(([key, text]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
