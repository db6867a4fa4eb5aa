import { useState } from "preact/hooks";
import { get } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import type { Conversation } from "../api/types.ts";
import { to } from "../lib/router.ts";
import { plural } from "../lib/text.ts";
import { ActDialog } from "../parts/Act.tsx";
import { Empty, Loading } from "../parts/Empty.tsx";
import { Problem } from "../parts/Problem.tsx";
import { Stale } from "../parts/Stale.tsx";
import { Time } from "../parts/Time.tsx";

type Forgetting = { kind: "conversation"; conversation: Conversation } | { kind: "user"; userId: string } | null;

/** Lists the conversations that the agent remembers, with their users. */
export function Memory({ agentId }: { agentId: string }) {
  const [user, setUser] = useState("");
  const [forgetting, setForgetting] = useState<Forgetting>(null);
  const list = useResource((signal) => get("/api/memory/conversations", { query: { agentId, limit: 100, ...(user ? { userId: user } : {}) }, signal }), [agentId, user]);
  if (list.error && !list.data) return <Problem error={list.error} retry={list.reload} />;
  if (!list.data) return <Loading what="conversations" />;
  const { conversations, total } = list.data;
  return (
    <>
      <div class="note">
        <span>
          {plural(total, "conversation")}{user && ` of ${user}`}
          {total > conversations.length && `, the newest ${conversations.length} of them shown`}
        </span>
        {user && (
          <>
            <button type="button" class="bare" onClick={() => setUser("")}>
              of all users
            </button>
            <button type="button" class="button danger" onClick={() => setForgetting({ kind: "user", userId: user })}>
              Forget {user}
            </button>
          </>
        )}
      </div>
      <Stale of={list} />
      {conversations.length === 0 && (
        <Empty title="Nothing is remembered">
          <p>Chats with this agent stand here, with what was said.</p>
        </Empty>
      )}
      <ul class="lasts conversations">
        {conversations.map((each) => (
          <li key={each.id + (each.userId ?? "")}>
            <a href={`${to("agents", agentId)}?chat=${encodeURIComponent(each.id)}${each.userId ? `&user=${encodeURIComponent(each.userId)}` : ""}`}>
              <bdi>{each.title || each.id}</bdi>
            </a>
            {each.userId ? (
              <button type="button" class="bare" onClick={() => setUser(each.userId ?? "")}>
                <bdi>{each.userId}</bdi>
              </button>
            ) : (
              <span class="quiet">no user</span>
            )}
            <Time at={each.updatedAt} />
            <button type="button" class="bare small" onClick={() => setForgetting({ kind: "conversation", conversation: each })}>
              forget
            </button>
          </li>
        ))}
      </ul>
      {forgetting && <Forget agentId={agentId} what={forgetting} close={() => setForgetting(null)} done={list.reload} />}
    </>
  );
}

function Forget({ agentId, what, close, done }: { agentId: string; what: NonNullable<Forgetting>; close: () => void; done: () => void }) {
  const finish = (): void => {
    close();
    done();
  };
  if (what.kind === "user") {
    return (
      <ActDialog title={`Forget ${what.userId}`} verb="Forget the user" danger call={{ method: "DELETE", path: `/api/memory/users/${encodeURIComponent(what.userId)}` }} done={finish} close={close}>
        <p>Deletes the data of this user on this server: conversations with all agents, and the user’s id and answers in executions. It cannot be undone.</p>
      </ActDialog>
    );
  }
  const { id, userId } = what.conversation;
  const query = new URLSearchParams({ agentId, ...(userId ? { userId } : {}) });
  return (
    <ActDialog title="Forget the conversation" verb="Forget it" danger call={{ method: "DELETE", path: `/api/memory/conversations/${encodeURIComponent(id)}?${query}` }} done={finish} close={close}>
      <p>Deletes it with its messages. It cannot be undone.</p>
    </ActDialog>
  );
}
