"""The client that openapi-generator writes for Python."""

import json
import os

import greenroom_client as greenroom

client = greenroom.ApiClient(greenroom.Configuration(host=os.environ["GREENROOM_URL"]))
workflows, agents = greenroom.WorkflowsApi(client), greenroom.AgentsApi(client)

started = workflows.execute_workflow_noop3(
    greenroom.ExecuteWorkflowNoop3Request(input=greenroom.WorkflowNoop3Input(n=4))
)
asked = greenroom.GenerationRequest(
    input=greenroom.AgentInput("say hello"),
    options=greenroom.GenerationOptions(generation_id="by-openapi-generator"),
)
answered = agents.generate_text("assistant", asked)
try:
    hello = greenroom.GenerationRequest.from_dict({"input": "hello"})
    agents.generate_text("added-later", hello)
    raise SystemExit("nothing was refused")
except greenroom.ApiException as refusal:
    error = json.loads(refusal.body)["error"]

print(
    json.dumps(
        {
            "status": started.data.status,
            "result": started.data.result,
            "said": answered.data.text,
            "error": error,
        }
    )
)
