import { useEffect, useRef, useState } from "preact/hooks";
import { token } from "../api/auth.ts";
import { address, send } from "../api/client.ts";
import { type ApiError, isRefused, refusal } from "../api/error.ts";
import { type Names, useNames } from "../api/names.ts";
import { asError } from "../api/resource.ts";
import { parseJson } from "../lib/json.ts";
import { nameOf, type Named } from "../lib/named.ts";
import { param, setParams } from "../lib/router.ts";
import { number, plural } from "../lib/text.ts";
import { parse } from "../lib/time.ts";
import { Empty, Loading } from "../parts/Empty.tsx";
import { Problem } from "../parts/Problem.tsx";
import { fromInput, toInput } from "../schema/typed.ts";
import { type Line, Lines } from "./Lines.tsx";
import { newIn, type Numbered, type Page, startOf, type Tail, withNewest, withOlder } from "./tail.ts";

const levels = ["error", "warn", "info", "debug", "trace"];
const interval = 2000;
const pageSize = 300;

/** Log records: the newest as they are written, or those up to a time. */
export function Logs() {
  const names = useNames();
  const until = parse(param("until")) === null ? "" : param("until");
  const words = param("text").trim().toLowerCase();
  const { tail, waiting, error, isPaused, pause, older } = useTail(until);
  const lines = (tail?.lines ?? []).map(lineOf);
  const found = words ? lines.filter((line) => line.text.toLowerCase().includes(words)) : lines;
  const newest = (): void => {
    setParams({ until: "" });
    pause(false);
    window.scrollTo(0, 0);
  };
  return (
    <>
      <Filters names={names} />
      {error && <Problem error={error} />}
      {!tail && !error && <Loading what="logs" />}
      {tail && (
        <div class="note logstate">
          <span role="status">
            {words && `${number(found.length)} of the `}
            {plural(lines.length, "line")} {words ? "shown have the text" : "shown"}, newest first
            {until ? `, up to ${new Date(until).toLocaleString("en-GB")}` : isPaused ? `, paused${waiting === "" ? "" : `: ${waiting} newer`}` : ", live"}
          </span>
          {!until && (
            <button type="button" class="button" aria-pressed={isPaused} onClick={() => pause(!isPaused)}>
              {isPaused ? "Continue" : "Pause"}
            </button>
          )}
          <button type="button" class="button" onClick={newest}>
            To the newest
          </button>
        </div>
      )}
      {tail?.lines.length === 0 && (
        <Empty title="Nothing was logged">
          <p>No record fits. The server stores those that its configuration asks for.</p>
        </Empty>
      )}
      <Lines lines={found} names={names} words={words} />
      {tail?.cursor && (
        <button type="button" class="button" onClick={older}>
          Older lines
        </button>
      )}
    </>
  );
}

/** The records that fit the address. While nobody has paused, new ones come before them. */
function useTail(until: string): { tail: Tail | null; waiting: string; error: ApiError | null; isPaused: boolean; pause: (on: boolean) => void; older: () => void } {
  const [tail, setTail] = useState<Tail | null>(null);
  const [held, setHeld] = useState<Page | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [isPaused, setPaused] = useState(false);
  const paused = useRef(false);
  const query = { level: param("level"), workflowId: param("workflow"), executionId: param("execution"), agentId: param("agent"), until: until && new Date(until).toISOString() };
  const key = JSON.stringify(query);

  const read = async (more: object, signal?: AbortSignal): Promise<Page> => {
    const response = await send("GET", address("/api/logs", { query: { ...query, ...more, limit: pageSize } }), signal ? { signal } : {});
    if (!response.ok) throw await refusal(response);
    // This answer has no envelope.
    return parseJson(await response.text()) as Page;
  };
  useEffect(() => {
    setTail(null);
    setHeld(null);
    const controller = new AbortController();
    // A slow answer is waited for: one that a newer one has overtaken would put the list back. A refusal stays one.
    let isBusy = false;
    const beat = async (): Promise<void> => {
      if (document.hidden || isBusy) return;
      isBusy = true;
      try {
        const page = await read({}, controller.signal);
        if (paused.current) setHeld(page);
        // A list that was paused before its first answer begins with it.
        setTail((before) => (!before ? startOf(page) : paused.current ? before : withNewest(before, page)));
        setError(null);
      } catch (failure) {
        if (controller.signal.aborted) return;
        setError(asError(failure));
        if (isRefused(asError(failure))) clearInterval(timer);
      } finally {
        isBusy = false;
      }
    };
    // What is before a time does not change.
    const timer = until ? undefined : setInterval(() => void beat(), interval);
    void beat();
    return () => {
      controller.abort();
      clearInterval(timer);
    };
  }, [key, token.value]);

  const pause = (on: boolean): void => {
    paused.current = on;
    setPaused(on);
    if (!on && tail && held) setTail(withNewest(tail, held));
    setHeld(null);
  };
  const older = (): void => {
    if (!tail?.cursor) return;
    read({ cursor: tail.cursor }).then(
      (page) => setTail((before) => (before === null || before.cursor !== tail.cursor ? before : withOlder(before, page))),
      (failure: unknown) => setError(asError(failure)),
    );
  };
  const added = tail && held ? newIn(tail, held) : 0;
  return { tail, waiting: added === null ? `${pageSize} or more` : added === 0 ? "" : number(added), error, isPaused, pause, older };
}

function lineOf({ key, entry }: Numbered): Line {
  return { ...entry, key, text: entry.msg + (entry.error ? ` ${entry.error.message}` : "") };
}

function Filters({ names }: { names: Names }) {
  const choice = (name: string, label: string, options: readonly Named[]) => {
    const chosen = param(name);
    return (
      <label>
        {label}
        <select value={chosen} onChange={(event) => setParams({ [name]: event.currentTarget.value })}>
          <option value="">any</option>
          {chosen && !options.some(({ id }) => id === chosen) && <option value={chosen}>{nameOf(options, chosen)}</option>}
          {options.map(({ id, name: text }) => (
            <option key={id} value={id}>
              {text}
            </option>
          ))}
        </select>
      </label>
    );
  };
  return (
    <div class="filters logfilters">
      <label>
        Level
        <select value={param("level")} onChange={(event) => setParams({ level: event.currentTarget.value })}>
          <option value="">all</option>
          {levels.map((level) => (
            <option key={level} value={level}>
              {level === "error" ? level : `at least ${level}`}
            </option>
          ))}
        </select>
      </label>
      {choice("workflow", "Workflow", names.workflows)}
      {choice("agent", "Agent", names.agents)}
      <label>
        Execution
        <input type="text" value={param("execution")} placeholder="any id" onChange={(event) => setParams({ execution: event.currentTarget.value.trim() })} />
      </label>
      <label>
        Text in these lines
        <input type="text" value={param("text")} placeholder="any" onInput={(event) => setParams({ text: event.currentTarget.value })} />
      </label>
      <label>
        Jump to
        <input type="datetime-local" step="1" value={toInput(param("until"), "date-time")} onChange={(event) => setParams({ until: fromInput(event.currentTarget.value, "date-time") })} />
      </label>
    </div>
  );
}
