import { computed } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api/client.ts";
import { useWorkflows } from "../api/names.ts";
import { useResource } from "../api/resource.ts";
import type { Ask } from "../api/types.ts";
import { boot } from "../lib/boot.ts";
import { useKeys, useTitle } from "../lib/hooks.ts";
import type { Named } from "../lib/named.ts";
import { go, param, setParams, to } from "../lib/router.ts";
import { actingAs } from "../lib/settings.ts";
import { useSettled } from "../lib/settled.ts";
import { now } from "../lib/time.ts";
import { firstLine, number, plural } from "../lib/text.ts";
import { Empty, Loading } from "../parts/Empty.tsx";
import { Readable } from "../parts/Facts.tsx";
import { Id } from "../parts/Id.tsx";
import { JsonBox, Letters, visible } from "../parts/Json.tsx";
import { Problem } from "../parts/Problem.tsx";
import { Stale } from "../parts/Stale.tsx";
import { kindOf, Status } from "../parts/Status.tsx";
import { Time, Until } from "../parts/Time.tsx";
import { Answer } from "./Answer.tsx";
import { Claim } from "./Claim.tsx";
import { aboutOf, alike } from "./alike.ts";
import { type Order, ordered, origin, whose, type Whose } from "./asks.ts";
import { inbox, learn, openAsks, read, readAsks, readMax } from "./store.ts";
import "./inbox.css";

/** The question that follows in the list. */
interface Next {
  ask: Ask;
  href: string;
}

/** Number of times that the execution is read again, ever more rarely, while it runs after an answer. */
const lookedMax = 8;

/** Letters of a question that are its title; a longer one is shown whole below that. */
const titleMax = 240;

/** Questions that are drawn at first, and how many more at a time. */
const drawnFirst = 100;
const drawnMore = 200;
/** Questions behind the chosen one that are drawn as well. */
const drawnBehind = 20;

/** Milliseconds without a change before lists of the server are read again for the questions that are known. */
const ownMs = 500;
const aboutMs = 5000;

const sameWords = computed(() => alike(openAsks.value));

const tabs: { which: Whose; text: string }[] = [
  { which: "all", text: "All" },
  { which: "mine", text: "Mine" },
  { which: "roles", text: "For roles" },
];

/** Everything that waits for a person: a list, and the chosen question beside it; on a phone, one of the two. */
export function InboxView({ path }: { path: string[] }) {
  useTitle("Inbox");
  const chosen = path[1] ?? "";
  const which = (param("whose") || "all") as Whose;
  const workflows = useWorkflows();
  const about = useAbout();
  const { error, refused, at, more, overflow, closed } = inbox.value;
  const order: Order = param("order") === "age" ? "age" : "deadline";
  const open = ordered(useWhose(which), order);
  const recent = closed.get(chosen);
  const list = recent && !open.some((ask) => ask.askId === chosen) ? [...open, recent] : open;
  const kept = new URLSearchParams({ ...(which === "all" ? {} : { whose: which }), ...(order === "age" ? { order } : {}) }).toString();
  const query = kept && `?${kept}`;
  const next = open.find((ask) => ask.askId !== chosen);
  const [wanted, setWanted] = useState(drawnFirst);
  const place = list.findIndex((ask) => ask.askId === chosen);
  const drawn = Math.max(wanted, place + drawnBehind);
  const rows = useRef<HTMLUListElement>(null);
  useEffect(() => rows.current?.querySelector('[aria-current="true"]')?.scrollIntoView({ block: "nearest" }), [chosen]);

  useKeys((event) => {
    if (event.key === "Enter" && (event.target as Element).matches("body, main") && chosen) {
      event.preventDefault();
      answerField()?.focus();
    }
    const by = event.key === "j" ? 1 : event.key === "k" ? -1 : 0;
    if (by === 0) return;
    const next = list[Math.max(0, place + by)] ?? list[0];
    if (next) go(to("inbox", next.askId) + query, "replace");
  });

  return (
    <div class={`inbox ${chosen ? "one" : ""}`}>
      <section class="asks" aria-label="Questions">
        <div class="heading">
          <h1>Inbox</h1>
          <div class="tabs small" role="group" aria-label="Whose">
            {tabs.map((tab) => (
              <button key={tab.which} type="button" aria-pressed={which === tab.which} onClick={() => setParams({ whose: tab.which === "all" ? "" : tab.which })}>
                {tab.text}
              </button>
            ))}
          </div>
          <label class="small order">
            Order{" "}
            <select value={order} onChange={(event) => setParams({ order: event.currentTarget.value === "age" ? "age" : "" })}>
              <option value="deadline">by deadline</option>
              <option value="age">oldest first</option>
            </select>
          </label>
        </div>
        {error && <Problem error={error} retry={() => void read()} />}
        {refused && <Problem error={refused} />}
        {at === 0 && !error && !refused && <Loading what="the inbox" />}
        {more && <p class="note">More than {number(readMax)} wait. These are the most urgent ones{order === "age" && ", of which the oldest come first"}.</p>}
        {overflow && <p class="note">More than 10,000 wait. Changes of the least urgent are not shown by themselves.</p>}
        {at > 0 && list.length === 0 && <Nothing which={which} />}
        <ul ref={rows}>
          {list.slice(0, drawn).map((ask) => (
            <li key={ask.askId}>
              <Row ask={ask} about={about(ask)} workflows={workflows} isChosen={ask.askId === chosen} href={to("inbox", ask.askId) + query} />
            </li>
          ))}
        </ul>
        {list.length > drawn && (
          <button type="button" class="button" onClick={() => setWanted(drawn + drawnMore)}>
            {plural(list.length - drawn, "more question")}
          </button>
        )}
      </section>
      {chosen ? <One key={chosen} id={chosen} back={to("inbox") + query} next={next && { ask: next, href: to("inbox", next.askId) + query }} /> : <p class="quiet choose">{list.length > 0 && `${plural(list.length, "question")}. Choose one, or press j.`}</p>}
    </div>
  );
}

/** Returns the first field of an answer, or else its first link or button. */
function answerField(): HTMLElement | null {
  const within = (selector: string): HTMLElement | null => document.querySelector(`.askdetail .answer :is(${selector})`);
  return within("input:not([type=checkbox]), select, textarea") ?? within("a, button");
}

/**
 * Returns the open questions of a tab. With tokens only the server knows which users they name: then "mine" are those
 * that the caller may answer.
 */
function useWhose(which: Whose): Ask[] {
  const asks = openAsks.value;
  const asksServer = boot.auth && which === "mine";
  const newest = asks.reduce((latest, ask) => (ask.openedAt > latest ? ask.openedAt : latest), "");
  const version = useSettled(`${asks.length} ${newest}`, ownMs);
  const mine = useResource(async (signal) => (asksServer ? (await readAsks({ to: "me" }, signal))[0].map((ask) => ask.askId) : []), [asksServer], version);
  if (!asksServer) return whose(asks, which, actingAs.value.trim());
  const ids = new Set(mine.data);
  return asks.filter((ask) => ids.has(ask.askId));
}

/** Returns what questions are about that look like another one: read with the executions that wait, not one by one. */
function useAbout(): (ask: Ask) => string {
  const same = sameWords.value;
  const isNeeded = same.size > 0;
  const version = useSettled(same.size, aboutMs);
  const waiting = useResource(async (signal) => (isNeeded ? (await get("/workflows/executions", { query: { status: "suspended", limit: 200 }, signal })).executions : []), [isNeeded], version);
  return (ask) => (same.has(ask.askId) ? aboutOf(ask, waiting.data ?? []) : "");
}

function Row({ ask, about, workflows, isChosen, href }: { ask: Ask; about: string; workflows: readonly Named[] | undefined; isChosen: boolean; href: string }) {
  const soon = ask.deadline !== null && Date.parse(ask.deadline) - now.value < 3_600_000;
  return (
    <a class={`ask ${ask.state === "open" ? "" : "closed"}`} href={href} aria-current={isChosen ? "true" : undefined}>
      <span class="question">
        <bdi>{visible(firstLine(ask.reason || "A question without words", titleMax))}</bdi>
      </span>
      <span class="quiet small from">
        <bdi>{origin(ask, workflows).text}</bdi>
        {ask.kind === "compensation" && " · compensation failed"}
        {about && (
          <>
            {" · "}
            <bdi>{about}</bdi>
          </>
        )}
        {" · "}
        <Id id={"executionId" in ask.of ? ask.of.executionId : ask.of.toolCallId} max={12} />
        {ask.userId && (
          <>
            {" · for "}
            <bdi>{ask.userId}</bdi>
          </>
        )}
        {ask.deadline && (
          <>
            {" · "}asked <Time at={ask.openedAt} />
          </>
        )}
        {ask.claimedBy && (
          <>
            {" · "}
            <bdi>{ask.claimedBy}</bdi> is at it
          </>
        )}
      </span>
      <span class={`small when ${soon ? "bad" : "quiet"}`}>
        {ask.state !== "open" ? ask.state : ask.deadline ? <>due {<Time at={ask.deadline} />}</> : <>asked {<Time at={ask.openedAt} />}</>}
      </span>
    </a>
  );
}

function One({ id, back, next }: { id: string; back: string; next: Next | undefined }) {
  const known = inbox.value.asks.get(id) ?? inbox.value.closed.get(id);
  const ask = useResource((signal) => get("/inbox/{askId}", { path: { askId: id }, signal }), [id], `${known?.state} ${known?.revision}`);
  const [answered, setAnswered] = useState(false);
  useEffect(() => setAnswered(false), [id]);
  useEffect(() => {
    if (ask.data && ask.data.state !== "open") learn(ask.data);
  }, [ask.data]);
  if (ask.error && !ask.data) {
    return (
      <section class="askdetail">
        <a href={back} class="back">
          ← All questions
        </a>
        <Problem error={ask.error} retry={ask.reload} />
      </section>
    );
  }
  if (!ask.data) return <Loading what="the question" />;
  const { data } = ask;
  const { text, view } = origin(data);
  const isOpen = data.state === "open";
  return (
    <section class="askdetail" aria-label="Question">
      <a href={back} class="back">
        ← All questions
      </a>
      <h1 class="big">
        <bdi title={data.reason}>{visible(firstLine(data.reason || "A question without words", titleMax))}</bdi>
      </h1>
      <p class="quiet">
        <a href={to(...view)}>
          <bdi>{text}</bdi>
        </a>{" "}
        asked <Time at={data.openedAt} />
        {data.deadline && isOpen && (
          <>
            , <Until at={data.deadline} />
          </>
        )}
        . {asked(data)}
      </p>
      {firstLine(data.reason, titleMax) !== data.reason && (
        <p class="wholereason">
          <Letters text={data.reason} class="prose" />
        </p>
      )}
      <Stale of={ask} />
      <PathSoFar ask={data} />
      {isOpen ? <Claim ask={data} changed={ask.reload} /> : <Closed ask={data} />}
      {!isNothing(data.payload) && <About payload={data.payload} />}
      {isOpen && !answered && (
        <Answer
          ask={data}
          answered={() => {
            setAnswered(true);
            ask.reload();
          }}
        />
      )}
      {data.data !== undefined && <JsonBox value={data.data} title="Answer" />}
      {!isOpen && <Afterwards ask={data} next={next} />}
    </section>
  );
}

/** Of a call without arguments there is nothing to show. */
function isNothing(payload: unknown): boolean {
  return payload === null || payload === undefined || JSON.stringify(payload) === "{}";
}

/** Shows the state of the execution after an answer, and the next question. */
function Afterwards({ ask, next }: { ask: Ask; next: Next | undefined }) {
  const of = "executionId" in ask.of ? ask.of : null;
  const [round, setRound] = useState(0);
  const ids = { id: of?.workflowId ?? "", executionId: of?.executionId ?? "" };
  const state = useResource(async (signal) => (of ? get("/workflows/{id}/executions/{executionId}/state", { path: ids, query: { values: false }, signal }) : null), [ids], round);
  const runs = state.data?.status === "running";
  useEffect(() => {
    if (!runs || round >= lookedMax) return;
    const timer = setTimeout(() => setRound(round + 1), 500 * (round + 1));
    return () => clearTimeout(timer);
  }, [runs, round]);
  return (
    <div class="afterwards">
      {of && state.data && (
        <p role="status">
          The execution: <Status kind={kindOf(state.data)} /> <a href={to("executions", of.workflowId, of.executionId)}>see it</a>
        </p>
      )}
      {next ? (
        <p>
          Next:{" "}
          <a href={next.href}>
            <bdi>{visible(firstLine(next.ask.reason || "A question without words", 120))}</bdi>
          </a>
        </p>
      ) : (
        <p class="quiet">Nothing else waits here.</p>
      )}
    </div>
  );
}

/** The steps that led to the question. */
function PathSoFar({ ask }: { ask: Ask }) {
  const of = "executionId" in ask.of ? ask.of : null;
  const state = useResource(
    async (signal) => (of ? get("/workflows/{id}/executions/{executionId}/state", { path: { id: of.workflowId, executionId: of.executionId }, query: { values: false }, signal }) : null),
    [of?.workflowId ?? "", of?.executionId ?? ""],
  );
  const steps = (state.data?.steps ?? []).filter((step) => !step.path.includes("[") || step.path === of?.path).slice(-6);
  if (!of || steps.length === 0) return null;
  return (
    <p class="pathsofar small" aria-label="Steps so far">
      {steps.map((step, index) => (
        <span key={step.path}>
          {index > 0 && <span class="quiet"> → </span>}
          <Status kind={step.path === of.path ? (ask.state === "open" ? "waiting" : "completed") : step.status === "completed" ? "completed" : step.status === "failed" ? "failed" : "running"} text={step.stepId} />
        </span>
      ))}
    </p>
  );
}

function asked(ask: Ask): string {
  const named = ask.to.filter((each) => !each.startsWith("!")).map((each) => each.replace(/^user:/, "").replace(/^role:/, "role "));
  const except = ask.to.includes("!self") ? ` Not ${ask.userId ?? "who started it"}.` : "";
  return (named.length === 0 ? "Everyone who sees it may answer." : `Asked: ${named.join(", ")}.`) + except;
}

function About({ payload }: { payload: unknown }) {
  const [raw, setRaw] = useState(false);
  return (
    <div class="about">
      {raw ? <JsonBox value={payload} title="About" /> : <Readable value={payload} />}
      <button type="button" class="bare small" aria-pressed={raw} onClick={() => setRaw(!raw)}>
        {raw ? "as a table" : "as JSON"}
      </button>
    </div>
  );
}

function Closed({ ask }: { ask: Ask & { answeredBy?: { id: string; verified: boolean } | undefined } }) {
  const by = ask.answeredBy ? ` by ${ask.answeredBy.id}${ask.answeredBy.verified ? "" : " (not verified)"}` : "";
  return (
    <p class="closedline" role="status">
      <Status kind={ask.state === "answered" ? "completed" : "cancelled"} text={ask.state + by} /> <Time at={ask.closedAt} />
    </p>
  );
}

function Nothing({ which }: { which: Whose }) {
  if (which === "mine") {
    return (
      <Empty title="Nothing waits for you">
        <p>{boot.auth ? "No question names you or a role of yours." : actingAs.value.trim() ? `No question names ${actingAs.value.trim()}.` : "Say who you are in the settings at the top right, so that questions for you can be told from others."}</p>
      </Empty>
    );
  }
  return (
    <Empty title="Nothing waits for a person">
      <p>Steps that ask for an approval or a value, and tools of agents that need one, are listed here until a person answers.</p>
      <p>
        To see one, start <a href={to("workflows", "expense-approval")}>the expense approval</a> with an amount of 900.
      </p>
    </Empty>
  );
}
