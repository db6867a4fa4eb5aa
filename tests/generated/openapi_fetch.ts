// openapi-fetch with the types of openapi-typescript: checked by tsc, then run.
import createClient from "openapi-fetch";
import type { paths } from "./api";

async function main() {
  const client = createClient<paths>({ baseUrl: process.env.GREENROOM_URL });

  const started = await client.POST("/workflows/noop3/execute", { body: { input: { n: 4 } } });
  if (started.error) throw new Error(started.error.error);
  const { status, result } = started.data.data;

  const answered = await client.POST("/agents/{id}/text", {
    params: { path: { id: "assistant" } },
    body: { input: "say hello", options: { generationId: "by-openapi-fetch" } },
  });
  if (answered.error) throw new Error(answered.error.error);
  const said: string = answered.data.data.text;

  // An agent that the document does not know may be added later.
  const refused = await client.POST("/agents/{id}/text", {
    params: { path: { id: "added-later" } },
    body: { input: [{ role: "user", parts: [{ type: "text", text: "hello" }] }] },
  });
  if (!refused.error) throw new Error("nothing was refused");
  const error: string = refused.error.error;

  console.log(JSON.stringify({ status, result, said, error }));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
