// The client that openapi-generator writes for typescript-fetch: checked by tsc, then run.
import { AgentsApi, Configuration, ResponseError, WorkflowsApi } from "./client";

async function main() {
  const server = new Configuration({ basePath: process.env.GREENROOM_URL });
  const [workflows, agents] = [new WorkflowsApi(server), new AgentsApi(server)];

  const started = await workflows.executeWorkflowNoop3({
    executeWorkflowNoop3Request: { input: { n: 4 } },
  });
  const { status, result } = started.data;

  const answered = await agents.generateText({
    id: "assistant",
    generationRequest: { input: "say hello", options: { generationId: "by-typescript-fetch" } },
  });
  const said: string = answered.data.text;

  const asking = agents.generateText({ id: "added-later", generationRequest: { input: "hello" } });
  const refusal = await asking.then(
    () => Promise.reject(new Error("nothing was refused")),
    (error: unknown) => (error instanceof ResponseError ? error.response.json() : Promise.reject(error)),
  );

  console.log(JSON.stringify({ status, result, said, error: refusal.error }));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
