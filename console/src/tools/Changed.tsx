import { useState } from "preact/hooks";
import type { McpServer, McpToolChanged, Tool } from "../api/types.ts";
import { boot } from "../lib/boot.ts";
import { plural } from "../lib/text.ts";
import { ActDialog, type Call, whyNot } from "../parts/Act.tsx";
import { Letters, visible } from "../parts/Json.tsx";
import { Status } from "../parts/Status.tsx";
import { Time } from "../parts/Time.tsx";
import { changedParts, revealed, whileChanged } from "./servers.ts";

interface Props {
  server: McpServer;
  tools: readonly Tool[];
  reload: () => void;
}

/** Tools whose definitions are not the accepted ones: what they say now beside what was accepted. */
export function Changed({ server, tools, reload }: Props) {
  /** Change that is about to be accepted, or all. It stays what was shown, also if the tool changes meanwhile. */
  const [open, setOpen] = useState<McpToolChanged | "all">();
  const base = `/tools/mcp/${encodeURIComponent(server.name)}/accept`;
  const why = whyNot(base);
  const close = (): void => setOpen(undefined);
  const done = (): void => {
    close();
    reload();
  };
  return (
    <section class="toolpart" aria-label="Changed tools">
      <div class="heading">
        <h2>
          <Status kind="waiting" text={`${plural(server.changed.length, "tool")} changed`} />
        </h2>
        {server.changed.length > 1 && (
          <div class="actions">
            <button type="button" class="button" disabled={why !== ""} title={why} onClick={() => setOpen("all")}>
              Accept all…
            </button>
          </div>
        )}
      </div>
      {why !== "" && !boot.readOnly && <p class="note refused">Accept: {why}.</p>}
      <ul class="changes">
        {server.changed.map((each) => (
          <li key={each.name}>
            <Change server={server} change={each} accepted={tools.find((tool) => tool.name === `${server.name}.${each.name}`)} />
            <button type="button" class="button" disabled={why !== ""} title={why} onClick={() => setOpen(each)} aria-label={`Accept ${each.name}…`}>
              Accept…
            </button>
          </li>
        ))}
      </ul>
      {open === "all" && <AcceptAll call={{ method: "POST", path: base }} server={server} close={close} done={done} />}
      {open && open !== "all" && <AcceptOne call={{ method: "POST", path: base, body: { tool: open.name, hash: open.hash } }} change={open} close={close} done={done} failed={reload} />}
    </section>
  );
}

function Change({ server, change, accepted }: { server: McpServer; change: McpToolChanged; accepted: Tool | undefined }) {
  return (
    <>
      <p>
        <code>
          <bdi>{visible(change.name)}</bdi>
        </code>{" "}
        has changed since it was accepted <Time at={change.acceptedAt} />: {changedParts(change)}.
        <span class="quiet">
          {" "}
          First seen <Time at={change.firstSeen} />. {whileChanged(server, change)}
        </span>
      </p>
      {change.description !== undefined && (
        <dl class="facts beforeafter">
          {accepted && (
            <div>
              <dt>Accepted</dt>
              <dd>
                <Letters text={revealed(accepted.description)} class="prose" />
              </dd>
            </div>
          )}
          <div>
            <dt>Now</dt>
            <dd>
              <Letters text={revealed(change.description)} class="prose" />
            </dd>
          </div>
        </dl>
      )}
      {change.description !== undefined && <p class="quiet small">The new description is shown around its first difference.</p>}
      {change.parts.some((part) => part !== "description") && (
        <p class="quiet small">New schemas and hints are not shown here: ask the server for them before you accept. The accepted arguments are with the tool below.</p>
      )}
    </>
  );
}

interface DialogProps {
  call: Call;
  close: () => void;
  done: () => void;
}

function AcceptOne({ call, change, close, done, failed }: DialogProps & { change: McpToolChanged; failed: () => void }) {
  return (
    <ActDialog title={`Accept the change of ${change.name}`} verb="Accept" call={call} close={close} done={done} failed={failed}>
      {change.description !== undefined && (
        <p class="about">
          <Letters text={revealed(change.description)} class="prose" />
        </p>
      )}
      <p>Models read the new definition of this tool from now on, and its calls are made as before. That counts for all servers of this database.</p>
      <p class="quiet small">It is refused if the tool changes once more before the request arrives.</p>
    </ActDialog>
  );
}

function AcceptAll({ call, server, close, done }: DialogProps & { server: McpServer }) {
  return (
    <ActDialog title={`Accept all changes of ${server.name}`} verb={`Accept ${plural(server.changed.length, "change")}`} danger call={call} close={close} done={done}>
      <p>
        Models read the new definitions of{" "}
        {server.changed.map(({ name }, index) => (
          <span key={name}>
            {index > 0 && ", "}
            <code>{visible(name)}</code>
          </span>
        ))}{" "}
        from now on. That counts for all servers of this database.
      </p>
      <p class="quiet small">What the tools are when the request arrives is accepted, also of one that changes meanwhile. One at a time is accepted as it is shown.</p>
    </ActDialog>
  );
}
