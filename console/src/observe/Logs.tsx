import { useEffect, useState } from "preact/hooks";
import { address, send } from "../api/client.ts";
import { type ApiError, refusal } from "../api/error.ts";
import { asError } from "../api/resource.ts";
import type { LogEntry } from "../api/types.ts";
import { param, setParams } from "../lib/router.ts";
import { Empty, Loading } from "../parts/Empty.tsx";
import { Problem } from "../parts/Problem.tsx";
import { Lines } from "./Lines.tsx";

const levels = ["error", "warn", "info", "debug", "trace"];
const interval = 2000;
const shown = 300;

/** The newest log records, read again while nobody has paused. A socket could not carry a token. */
export function Logs() {
  const [entries, setEntries] = useState<LogEntry[] | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [paused, setPaused] = useState(false);
  const query = { level: param("level"), workflowId: param("workflow"), executionId: param("execution"), agentId: param("agent") };
  const key = JSON.stringify(query);

  useEffect(() => {
    const controller = new AbortController();
    const read = async (): Promise<void> => {
      if (document.hidden) return;
      try {
        const response = await send("GET", address("/api/logs", { query: { ...query, limit: shown } }), { signal: controller.signal });
        if (!response.ok) throw await refusal(response);
        // This answer has no envelope.
        setEntries(((await response.json()) as { data: LogEntry[] }).data);
        setError(null);
      } catch (failure) {
        if (!controller.signal.aborted) setError(asError(failure));
      }
    };
    void read();
    const timer = paused ? undefined : setInterval(() => void read(), interval);
    return () => {
      controller.abort();
      clearInterval(timer);
    };
  }, [key, paused]);

  const words = param("text").toLowerCase();
  const lines = (entries ?? []).toReversed().map((entry) => ({ ...entry, text: entry.msg + (entry.error ? ` ${entry.error.message}` : "") }));
  const found = words ? lines.filter((line) => line.text.toLowerCase().includes(words)) : lines;
  const field = (name: string, label: string) => (
    <label>
      {label}
      <input type="text" value={param(name)} placeholder="any" onChange={(event) => setParams({ [name]: event.currentTarget.value.trim() })} />
    </label>
  );
  return (
    <>
      <div class="filters">
        <label>
          Level
          <select value={query.level} onChange={(event) => setParams({ level: event.currentTarget.value })}>
            <option value="">all</option>
            {levels.map((level) => (
              <option key={level} value={level}>
                {level}
              </option>
            ))}
          </select>
        </label>
        {field("workflow", "Workflow")}
        {field("execution", "Execution")}
        {field("agent", "Agent")}
        {field("text", "Has the words")}
        <button type="button" class="button clear" aria-pressed={paused} onClick={() => setPaused(!paused)}>
          {paused ? "Go on" : "Pause"}
        </button>
      </div>
      {error && <Problem error={error} />}
      {!entries && !error && <Loading what="logs" />}
      {entries?.length === 0 && (
        <Empty title="Nothing was logged">
          <p>No record fits. The server stores those that its configuration asks for.</p>
        </Empty>
      )}
      {entries && entries.length > 0 && (
        <>
          <p class="note" role="status">
            {words && `${found.length} of `}
            {entries.length === shown ? `the newest ${shown}` : entries.length}, newest first{paused ? ", paused" : ", read again every 2 s"}
          </p>
          <Lines lines={found} />
        </>
      )}
    </>
  );
}
