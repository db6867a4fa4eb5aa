import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { copyText } from "../lib/clipboard.ts";
import { nameOf } from "../lib/named.ts";
import { go, to } from "../lib/router.ts";
import { theme } from "../lib/settings.ts";
import { useSettled } from "../lib/settled.ts";
import { firstLine, middle } from "../lib/text.ts";
import { Dialog } from "./Dialog.tsx";
import { helpOpen } from "./Help.tsx";
import { views } from "./views.ts";

/** Entries that are listed: of more it is quicker to type on. */
const foundMax = 40;

export const paletteOpen = signal(false);

interface Entry {
  kind: string;
  text: string;
  hint: string;
  act: () => void;
  /** Another name under which it is found. */
  also?: string;
  /** True if the server found it by something that the entry does not show whole. */
  isFound?: boolean;
}

/** A shorter text is in most errors. */
const errorMin = 3;
const errorsMax = 10;

/** Names of views and workflows have spaces, ids have none. */
function mayBeId(text: string): boolean {
  return text !== "" && !/\s/.test(text);
}

/** Goes anywhere, and does what has no place of its own. */
export function Palette() {
  return paletteOpen.value ? <Open /> : null;
}

function Open() {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [isChosenEarly, chooseEarly] = useState(false);
  const list = useRef<HTMLUListElement>(null);
  const workflows = useResource((signal) => get("/workflows", { signal }), []);
  const agents = useResource((signal) => get("/agents", { signal }), []);
  const servers = useResource((signal) => get("/tools/mcp", { signal }), []);
  const recent = useResource((signal) => get("/workflows/executions", { query: { limit: 50 }, signal }), []);
  const idPrefix = useSettled(text.trim(), 150);
  const byId = useResource(async (signal) => (mayBeId(idPrefix) ? get("/workflows/executions", { query: { idPrefix, limit: 20 }, signal }) : undefined), [idPrefix]);
  const error = idPrefix.length >= errorMin ? idPrefix : "";
  const byError = useResource(async (signal) => (error ? get("/workflows/executions", { query: { error, limit: errorsMax }, signal }) : undefined), [error]);
  const isLooking = [workflows, agents, servers, recent, byId, byError].some((each) => each.loading) || idPrefix !== text.trim();
  const close = (): void => {
    paletteOpen.value = false;
  };

  // Behind what has the name: whoever presses Enter before the answers are there means an id.
  const failed = isLooking ? [] : (byError.data?.executions ?? []);

  const entries = useMemo<Entry[]>(() => {
    const executions = new Map([...(recent.data?.executions ?? []), ...(byId.data?.executions ?? [])].map((item) => [item.executionId, item]));
    const link = (kind: string, name: string, hint: string, address: string): Entry => ({ kind, text: name, hint, act: () => go(address) });
    return [
      ...views.map((view) => link("View", view.name, `g ${view.key}`, view.href)),
      ...(workflows.data ?? []).map((item) => link("Workflow", item.name, item.id, to("workflows", item.id))),
      ...(agents.data ?? []).map((item) => link("Agent", item.name, item.id, to("agents", item.id))),
      ...(servers.data ?? []).map((item) => link("MCP", item.name, "MCP server", to("tools", item.name))),
      ...[...executions.values()].map((item) => ({ ...link("Execution", item.executionId, nameOf(workflows.data, item.workflowId), to("executions", item.workflowId, item.executionId)), also: item.workflowId })),
      ...failed.map((item) => ({ ...link("Failed", firstLine(item.error?.message ?? "failed", 100), `${nameOf(workflows.data, item.workflowId)} ${middle(item.executionId, 14)}`, to("executions", item.workflowId, item.executionId)), isFound: true })),
      ...(failed.length > 0 ? [{ ...link("Errors", `All with “${error}”`, "executions that failed", `${to("executions")}?${new URLSearchParams({ status: "error", error })}`), isFound: true }] : []),
      { kind: "Action", text: "Light", hint: "theme", act: () => (theme.value = "light") },
      { kind: "Action", text: "Dark", hint: "theme", act: () => (theme.value = "dark") },
      { kind: "Action", text: "As the system", hint: "theme", act: () => (theme.value = "system") },
      { kind: "Action", text: "Copy the link of this page", hint: "as it is shown", act: () => void copyText(location.href) },
      { kind: "Action", text: "Keyboard", hint: "?", act: () => (helpOpen.value = true) },
    ];
  }, [workflows.data, agents.data, servers.data, recent.data, byId.data, byError.data, isLooking, error]);

  const wanted = text.trim().toLowerCase();
  const fitting = entries.filter((entry) => entry.isFound || `${entry.text} ${entry.hint} ${entry.kind} ${entry.also ?? ""}`.toLowerCase().includes(wanted));
  const found = fitting.slice(0, foundMax);
  const chosen = Math.min(at, Math.max(0, found.length - 1));
  const run = (entry: Entry | undefined): void => {
    if (!entry) return;
    close();
    // Behind the end of the dialog, which gives the focus back.
    setTimeout(entry.act);
  };
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [chosen, wanted]);

  useEffect(() => {
    if (isChosenEarly && found.length > 0) run(found[0]);
    else if (!isLooking) chooseEarly(false);
  }, [isChosenEarly, isLooking, found.length]);

  return (
    <Dialog title="Go to" close={close}>
      <input
        class="palette"
        type="text"
        role="combobox"
        aria-label="Execution, workflow, agent, view, action or error"
        aria-expanded="true"
        aria-controls="found"
        aria-activedescendant={found.length ? `found-${chosen}` : undefined}
        placeholder="Execution id, text of an error, workflow, agent, view"
        autofocus
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
          chooseEarly(false);
        }}
        onKeyDown={(event) => {
          if (event.isComposing) return;
          if (event.key === "ArrowDown") setAt(Math.min(found.length - 1, chosen + 1));
          else if (event.key === "ArrowUp") setAt(Math.max(0, chosen - 1));
          else if (event.key === "Enter" && found.length > 0) run(found[chosen]);
          else if (event.key === "Enter") chooseEarly(isLooking);
          else return;
          event.preventDefault();
        }}
      />
      <ul class="found" role="listbox" id="found" ref={list} aria-label="Found">
        {found.map((entry, index) => (
          <li key={`${index} ${entry.kind} ${entry.text}`} id={`found-${index}`} role="option" aria-selected={index === chosen} onClick={() => run(entry)}>
            <span class="quiet small">{entry.kind}</span>
            <bdi>{entry.text}</bdi>
            <span class="quiet small">
              <bdi>{entry.hint}</bdi>
            </span>
          </li>
        ))}
      </ul>
      {fitting.length > found.length && (
        <p class="quiet small">
          The first {foundMax} of {fitting.length}: type more of the name or id.
        </p>
      )}
      {found.length === 0 && (
        <p class="quiet" role="status">
          {isLooking ? "Looking…" : "No view, workflow, agent or action has this name, and no execution this id or error."}
        </p>
      )}
    </Dialog>
  );
}
