import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { declining } from "../inbox/asks.ts";
import { pageOf } from "../inbox/page.ts";
import { PageQuestion } from "../inbox/PageQuestion.tsx";
import { writeJson } from "../lib/json.ts";
import { go, param, place, setParams } from "../lib/router.ts";
import { actor } from "../lib/settings.ts";
import { duration } from "../lib/time.ts";
import { CopyCalls, whyNot } from "../parts/Act.tsx";
import { Json, JsonBox, visible } from "../parts/Json.tsx";
import { Problem } from "../parts/Problem.tsx";
import { Loading } from "../parts/Empty.tsx";
import { type Kind, Status } from "../parts/Status.tsx";
import { type Draft, Editor } from "../schema/Editor.tsx";
import { focusFault } from "../schema/focus.ts";
import { asSchema, initial } from "../schema/schema.ts";
import { validate } from "../schema/validate.ts";
import { Chat, newConversation, type Timing } from "./chat.ts";
import type { Answer, Message, Part, ToolPart } from "./messages.ts";

/** A conversation over the real stream of the agent. */
export function ChatPane({ agentId, isStored }: { agentId: string; isStored: boolean }) {
  const conversation = param("chat");
  useEffect(() => {
    if (!conversation) setParams({ chat: newConversation() });
  }, [conversation]);
  if (!conversation) return null;
  return <Conversation key={conversation} agentId={agentId} conversation={conversation} isStored={isStored} />;
}

function Conversation({ agentId, conversation, isStored }: { agentId: string; conversation: string; isStored: boolean }) {
  const user = param("user");
  const chat = useMemo(() => new Chat(agentId, conversation, isStored, user ? { userId: user } : actor()), [agentId, conversation, isStored, user]);
  useEffect(() => {
    void chat.open();
    return () => chat.close();
  }, [chat]);
  const messages = chat.messages.value;
  const showRaw = param("raw") === "1";
  const end = useRef<HTMLDivElement>(null);
  const [text, setText] = useState("");
  useEffect(() => {
    // Follows the text, unless somebody has scrolled up to read.
    const element = end.current;
    if (element && element.getBoundingClientRect().top < innerHeight + 240) element.scrollIntoView({ block: "end" });
  }, [messages]);
  return (
    <div class={`chat ${showRaw ? "withraw" : ""}`}>
      <div class="talk">
        <div class="note">
          <span>
            Conversation <code>{conversation}</code>
            {!isStored && ". This agent stores none: it ends with this page."}
          </span>
          <button type="button" class="bare small" onClick={() => go(`${place.value.path}?chat=${newConversation()}`)}>
            New conversation
          </button>
          <CopyCalls calls={() => [chat.callOf(text || "…")]} class="bare small" />
          <label>
            <input type="checkbox" checked={showRaw} onChange={(event) => setParams({ raw: event.currentTarget.checked ? "1" : "" })} /> raw events
          </label>
        </div>
        {!chat.isRead.value && messages.length === 0 && <Loading what="the conversation" />}
        <div class="messages" role="log" aria-label="Conversation" aria-live="off">
          {messages.map((message, index) => (
            <MessageView key={message.id} message={message} chat={chat} again={setText} timing={chat.timings.value.get(message.id)} isLast={index === messages.length - 1} />
          ))}
          {chat.isBusy.value && <p class="quiet small busy">{messages.at(-1)?.role === "user" ? "Thinking…" : "Writing…"}</p>}
        </div>
        {chat.error.value && <Problem error={chat.error.value} />}
        <Composer chat={chat} text={text} setText={setText} />
        <div ref={end} />
      </div>
      {showRaw && <RawEvents chat={chat} />}
    </div>
  );
}

function Composer({ chat, text, setText }: { chat: Chat; text: string; setText: (text: string) => void }) {
  const field = useRef<HTMLTextAreaElement>(null);
  // Texts that were asked before come from above.
  useEffect(() => {
    if (text && document.activeElement !== field.current) field.current?.focus();
  }, [text]);
  const isBusy = chat.isBusy.value;
  const isReady = chat.isRead.value && !isBusy && text.trim() !== "" && whyNot() === "";
  const submit = (): void => {
    if (!isReady) return;
    setText("");
    void chat.ask(text);
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <textarea
        ref={field}
        aria-label="Message"
        rows={2}
        placeholder="Enter sends, Shift Enter begins a line"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
            event.preventDefault();
            submit();
          }
        }}
      />
      {isBusy ? (
        <button type="button" class="button" onClick={() => void chat.stop()}>
          Stop
        </button>
      ) : (
        <button type="submit" class="button primary" disabled={!isReady} title={whyNot()}>
          Send
        </button>
      )}
    </form>
  );
}

function MessageView({ message, chat, timing, isLast, again }: { message: Message; chat: Chat; timing: Timing | undefined; isLast: boolean; again: (text: string) => void }) {
  const asked = message.role === "user" ? message.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n") : "";
  return (
    <article class={`message ${message.role}`} aria-label={message.role === "user" ? "You" : "Agent"}>
      {message.parts.map((part, index) => (
        <PartView key={part.type === "tool" ? part.toolCallId : index} part={part} asks={message.parts.some((each) => each.type === "ask" && part.type === "tool" && each.toolCallId === part.toolCallId)} />
      ))}
      {asked && !chat.isBusy.value && (
        <button type="button" class="bare small again" onClick={() => again(asked)}>
          edit and ask again
        </button>
      )}
      {isLast && !chat.isBusy.value && <Questions message={message} chat={chat} />}
      {message.error !== undefined && <p class="bad">{message.error || "The answer ended with an error."}</p>}
      {message.isAborted && <p class="quiet small">Stopped.{message.isLeftOut && " It is not part of the conversation: the agent does not see it again."}</p>}
      {message.isLeftOut && message.error !== undefined && <p class="quiet small">It is not part of the conversation.</p>}
      {message.tokens && message.tokens.input + message.tokens.output > 0 && (
        <p class="quiet small">
          {message.tokens.input} tokens in, {message.tokens.output} out
          {timing?.firstWord != null && ` · first word after ${duration(timing.firstWord)}`}
          {timing?.whole != null && ` · ${duration(timing.whole)} in all`}
        </p>
      )}
    </article>
  );
}

function PartView({ part, asks }: { part: Part; asks: boolean }) {
  switch (part.type) {
    case "text":
      return part.text ? <p class="prose">{visible(part.text)}</p> : null;
    case "reasoning":
      return part.text ? (
        <details>
          <summary class="quiet small">Reasoning</summary>
          <p class="prose quiet">{visible(part.text)}</p>
        </details>
      ) : null;
    case "file":
      return (
        <p class="quiet">
          File <bdi>{part.name}</bdi> ({part.mediaType})
        </p>
      );
    case "tool":
      return <Tool part={part} asks={asks} />;
    case "ask":
      return null;
  }
}

const toolStates: Record<ToolPart["state"], [Kind, string]> = {
  writing: ["running", "writes arguments"],
  called: ["running", "called"],
  asks: ["waiting", "waits for an approval"],
  answered: ["running", "answered"],
  done: ["completed", "done"],
  failed: ["failed", "failed"],
  refused: ["cancelled", "refused"],
};

function Tool({ part, asks }: { part: ToolPart; asks: boolean }) {
  const [kind, text]: [Kind, string] = asks ? ["waiting", "asks"] : toolStates[part.state];
  return (
    <details class="tool">
      <summary>
        <code>
          <bdi>{part.name}</bdi>
        </code>
        <Status kind={kind} text={text} />
      </summary>
      {part.input !== undefined ? <JsonBox value={part.input} title="Arguments" /> : <pre class="prose">{part.inputText}</pre>}
      {part.output !== undefined && <JsonBox value={part.output} title="Result" />}
      {part.error !== undefined && <pre class="errortext">{part.error}</pre>}
    </details>
  );
}

/** Shows the questions and approvals of a message. The answers are sent together, once each has one. */
function Questions({ message, chat }: { message: Message; chat: Chat }) {
  const [answers, setAnswers] = useState<ReadonlyMap<string, Answer>>(new Map());
  const approvals = message.parts.filter((part) => part.type === "tool" && part.state === "asks") as ToolPart[];
  const asks = message.parts.filter((part) => part.type === "ask");
  const open = approvals.length + asks.length;
  if (open === 0) return null;
  const give = (toolCallId: string, answer: Answer): void => {
    const next = new Map(answers).set(toolCallId, answer);
    setAnswers(next);
    if (next.size === open) void chat.answer(message, next);
  };
  return (
    <>
      {approvals.filter((part) => !answers.has(part.toolCallId)).map((part) => (
        <ApprovalCard key={part.toolCallId} part={part} give={(answer) => give(part.toolCallId, answer)} />
      ))}
      {asks.filter((part) => !answers.has(part.toolCallId)).map((part) => (
        <QuestionCard key={part.askId} askId={part.askId} question={part.question} schema={part.schema} give={(output) => give(part.toolCallId, { kind: "output", output })} />
      ))}
      {answers.size > 0 && answers.size < open && <p class="quiet small">{open - answers.size} more to answer.</p>}
    </>
  );
}

function ApprovalCard({ part, give }: { part: ToolPart; give: (answer: Answer) => void }) {
  const [reason, setReason] = useState("");
  return (
    <section class="card" aria-label={`Approval of ${part.name}`}>
      <p>
        May it call <code>{part.name}</code>?
      </p>
      <Json value={part.input} open={1} />
      <input type="text" aria-label="Reason" placeholder="Reason, optional" value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
      <div class="actions">
        <button type="button" class="button primary" disabled={whyNot() !== ""} title={whyNot()} onClick={() => give({ kind: "approval", approved: true, reason })}>
          Approve
        </button>
        <button type="button" class="button danger" disabled={whyNot() !== ""} title={whyNot()} onClick={() => give({ kind: "approval", approved: false, reason })}>
          Refuse
        </button>
      </div>
    </section>
  );
}

function QuestionCard({ askId, question, schema, give }: { askId: string; question: string; schema: unknown; give: (output: unknown) => void }) {
  const page = pageOf(schema);
  // The stream does not say whether it may be declined.
  const ask = useResource((signal) => get("/inbox/{askId}", { path: { askId }, signal }), [askId]);
  const [draft, setDraft] = useState<Draft>(() => ({ value: initial(asSchema(schema) ?? {}) ?? {}, broken: null }));
  const [tried, setTried] = useState(false);
  return (
    <form
      class="card"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (page || whyNot() !== "") return;
        setTried(true);
        // What the server refuses is asked again, and what was typed is lost.
        if (draft.broken === null && validate(schema, draft.value).length === 0) give(draft.value);
        else focusFault(event.currentTarget);
      }}
    >
      <p>
        <bdi>{visible(question)}</bdi>
      </p>
      {page ? (
        <PageQuestion page={page} isBusy={false} why={whyNot()} give={give} />
      ) : (
        <>
          <Editor schema={schema} draft={draft} change={setDraft} showFaults={tried} label="Answer" />
          <div class="actions">
            <button type="submit" class="button primary" disabled={whyNot() !== ""} title={whyNot()}>
              Answer
            </button>
            {ask.data?.canDecline && (
              <button type="button" class="button danger" disabled={whyNot() !== ""} title={whyNot()} onClick={() => give(declining)}>
                Decline
              </button>
            )}
          </div>
        </>
      )}
    </form>
  );
}

function RawEvents({ chat }: { chat: Chat }) {
  return (
    <section class="raw" aria-label="Raw events">
      <h2>Raw events</h2>
      <p class="quiet small">As the stream brought them, with milliseconds after the request. The newest 500.</p>
      {chat.raw.value.length === 0 && <p class="quiet small">None yet: they come with the next answer.</p>}
      <ol tabIndex={0}>
        {chat.raw.value.map(({ at, frame }, index) => (
          <li key={index}>
            <span class="quiet number">{at}</span> <code>{writeJson(frame)}</code>
          </li>
        ))}
      </ol>
    </section>
  );
}
