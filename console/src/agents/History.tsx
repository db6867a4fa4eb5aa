import { useState } from "preact/hooks";
import { get } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { writeJson } from "../lib/json.ts";
import { to } from "../lib/router.ts";
import { firstLine, number } from "../lib/text.ts";
import { Empty, Loading } from "../parts/Empty.tsx";
import { Id } from "../parts/Id.tsx";
import { JsonBox } from "../parts/Json.tsx";
import { Problem } from "../parts/Problem.tsx";
import { Stale } from "../parts/Stale.tsx";
import { kindOf, Status } from "../parts/Status.tsx";
import { Duration, Time } from "../parts/Time.tsx";

/** Generations of the agent, newest first. */
export function History({ agentId }: { agentId: string }) {
  const [page, setPage] = useState(0);
  const history = useResource((signal) => get("/agents/{id}/history", { path: { id: agentId }, query: { page, limit: 25 }, signal }), [agentId, page]);
  if (history.error && !history.data) return <Problem error={history.error} retry={history.reload} />;
  if (!history.data) return <Loading what="the history" />;
  const { entries, pagination } = history.data;
  if (entries.length === 0) {
    return (
      <Empty title="It was never asked">
        <p>Each call of the agent stands here, from chats, workflows and other agents.</p>
      </Empty>
    );
  }
  return (
    <>
      <div class="note">
        <span>{number(pagination.total)} generations, newest first</span>
        <button type="button" class="button" onClick={history.reload}>
          Read again
        </button>
      </div>
      <Stale of={history} />
      <ul class="generations">
        {entries.map((entry) => (
          <li key={entry.id}>
            <details>
              <summary>
                <Status kind={kindOf(entry)} />
                <bdi class="what">{firstLine(textOf(entry.input), 120)}</bdi>
                <span class="small quiet">
                  {entry.usage && `${entry.usage.totalTokens} tokens · `}
                  <Duration from={entry.startTime} until={entry.endTime} rough /> · <Time at={entry.startTime} />
                </span>
              </summary>
              <div class="generation">
                <p class="small quiet">
                  <Id id={entry.id} max={40} copy /> · <a href={to("observe", "traces", entry.traceId)}>trace</a>
                  {entry.conversationId && (
                    <>
                      {" · "}
                      <a href={`${to("agents", agentId)}?chat=${encodeURIComponent(entry.conversationId)}${entry.userId ? `&user=${encodeURIComponent(entry.userId)}` : ""}`}>conversation</a>
                    </>
                  )}
                  {entry.userId && (
                    <>
                      {" · "}
                      <bdi>{entry.userId}</bdi>
                    </>
                  )}
                  {entry.via && (
                    <>
                      {" · through "}
                      <bdi>{entry.via}</bdi>
                    </>
                  )}
                </p>
                {entry.error && <pre class="errortext">{entry.error}</pre>}
                <JsonBox value={entry.input} title="Input" />
                <JsonBox value={entry.output} title="Output" />
                <JsonBox value={entry.steps} title="Turns" open={1} />
              </div>
            </details>
          </li>
        ))}
      </ul>
      {pagination.totalPages > 1 && <div class="actions pager">
        <button type="button" class="button" disabled={page === 0} onClick={() => setPage(page - 1)}>
          Newer
        </button>
        <button type="button" class="button" disabled={page + 1 >= pagination.totalPages} onClick={() => setPage(page + 1)}>
          Older
        </button>
      </div>}
    </>
  );
}

function textOf(input: unknown): string {
  return typeof input === "string" ? input : (writeJson(input) ?? "");
}
