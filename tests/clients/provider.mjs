// A provider of models that answers with the question, word by word, and a server that steps of a
// workflow call. Both stop in the middle, of long answers and of the calls, until they are released.

import { createServer } from "node:http";

/** Answers with more words than this stop in the middle. */
const SHORT = 10;

/** The call that waits. */
const MIDDLE = "/ticks/10";

/** Listens at a port of this machine; between `hold` and `release`, answers stop. */
export async function provide(port) {
  let gate = Promise.resolve();
  let open = () => {};

  const answer = async (question, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const say = (delta, finish_reason = null) => {
      const chunk = { object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] };
      response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    };
    const words = question.split(" ");
    for (const [place, word] of words.entries()) {
      if (words.length > SHORT && place === words.length / 2) await gate;
      say({ role: "assistant", content: place === 0 ? word : ` ${word}` });
    }
    say({}, "stop");
    response.end("data: [DONE]\n\n");
  };

  const server = createServer(async (request, response) => {
    if (request.method === "GET") {
      if (request.url === MIDDLE) await gate;
      response.writeHead(200, { "content-type": "application/json" });
      return response.end("{}");
    }
    const body = JSON.parse(await text(request));
    const { content } = body.messages.findLast(({ role }) => role === "user");
    const question = typeof content === "string" ? content : content.map(({ text }) => text).join("");
    return answer(question, response);
  });
  await new Promise((listening) => server.listen(port, "127.0.0.1", listening));
  return {
    hold: () => (gate = new Promise((resolve) => (open = resolve))),
    release: () => open(),
  };
}

async function text(request) {
  let text = "";
  for await (const piece of request.setEncoding("utf8")) text += piece;
  return text;
}
