"""The client that openapi-python-client writes."""

import json
import os

from greenroom_client import Client
from greenroom_client.api.agents import generate_text
from greenroom_client.api.workflows import execute_workflow_noop_3
from greenroom_client.models import (
    ExecuteWorkflowNoop3Body,
    Failure,
    GenerationOptions,
    GenerationRequest,
    WorkflowNoop3Input,
)

client = Client(base_url=os.environ["GREENROOM_URL"])

body = ExecuteWorkflowNoop3Body(input_=WorkflowNoop3Input(n=4))
started = execute_workflow_noop_3.sync(client=client, body=body)

options = GenerationOptions(generation_id="by-openapi-python-client")
asked = GenerationRequest(input_="say hello", options=options)
answered = generate_text.sync("assistant", client=client, body=asked)

refused = generate_text.sync("added-later", client=client, body=GenerationRequest(input_="hello"))
assert isinstance(refused, Failure), refused

print(
    json.dumps(
        {
            "status": started.data.status.value,
            "result": started.data.result,
            "said": answered.data.text,
            "error": refused.error,
        }
    )
)
