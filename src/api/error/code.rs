//! Table of error codes: status, title, cause and cure. `docs/errors.md` is generated from it.

mod parts;
#[macro_use]
mod table;

use self::table::Row;

codes! {
    "Requests" {
        NotFound "not_found" 404:
            "Not found",
            "No route has this path.",
            "Compare the path with the routes that `GET /` lists.";
        MethodNotAllowed "method_not_allowed" 405:
            "Method not allowed",
            "The path exists, but not with this method.",
            "Use one of the methods in the header `Allow`.";
        QueryInvalid "query_invalid" 400:
            "Invalid query parameter",
            "A query parameter has an invalid value.",
            "The text names the parameter and the allowed values.";
        HeaderInvalid "header_invalid" 400:
            "Invalid header",
            "A header has an invalid value.",
            "The text names the header and the allowed values.";
        RequestInvalid "request_invalid" 400:
            "Invalid request",
            "The request cannot be parsed, or its body is incomplete.",
            "The text says what is wrong; check proxies between client and server as well.";
        UpgradeRequired "upgrade_required" 426:
            "WebSocket only",
            "The route is a WebSocket, and the request has no valid handshake.",
            "Use a WebSocket client, version 13; proxies must forward `Upgrade`.";
        RequestRefused "request_refused" 400:
            "Refused by a handler",
            "An added handler refused the request, with a status 4xx that it chose.",
            "The text is that of the handler.";
        OriginNotAllowed "origin_not_allowed" 403:
            "Origin not allowed",
            "A web page of another origin sent a write request or opened a WebSocket.",
            "Add the origin to `origins` under `[cors]`.";
        HostNotAllowed "host_not_allowed" 403:
            "Host not allowed",
            "`Host` is not a known name of the server.",
            "Use the address that the server listens on, or add the name to `origins` under \
             `[cors]`.";
    }
    "Authentication and access" {
        AuthRequired "auth_required" 401:
            "Authentication required",
            "The route needs a token, and the request has none.",
            "Send `Authorization: Bearer <token>`.";
        TokenExpired "token_expired" 401:
            "Token expired",
            "The token was valid, and has expired.",
            "Get a new token from its issuer.";
        TokenInvalid "token_invalid" 401:
            "Invalid token",
            "The token is malformed, has a wrong signature, or is not for this server.",
            "The text gives the reason. Get a new token, or compare `[auth]` with its issuer.";
        AuthUnavailable "auth_unavailable" 503 wait 1:
            "Token cannot be checked",
            "The keys that verify tokens are currently unavailable.",
            "Try again; if it persists, see the log and the address of the keys under `[auth]`.";
        RoleMissing "role_missing" 403:
            "Role missing",
            "The token is valid, but its user has none of the required roles.",
            "The text names the roles; `[[auth.rules]]` sets them for each route.";
        NotYours "not_yours" 403:
            "Owned by another user",
            "The data to change belongs to another user.",
            "Use a token of that user, or of a role that may act for others.";
        LocalOnly "local_only" 403:
            "Only from the same machine",
            "Without a token, the route is open only to programs on the machine of the server.",
            "Send the request from that machine, or with a token.";
    }
    "Bodies" {
        JsonInvalid "json_invalid" 400:
            "Invalid JSON",
            "The body is not JSON, is nested too deeply, or is missing.",
            "The text gives the line and the column.";
        BodyInvalid "body_invalid" 400:
            "Invalid request body",
            "The body is JSON of the wrong shape.",
            "The text names the path in the body and the expected value.";
        ParameterUnsupported "unsupported_parameter" 400:
            "Unsupported parameter",
            "A member of the body asks for what the server does not do.",
            "The text names the member. Leave it out, or follow the hint.";
        BodyTooSlow "body_too_slow" 408:
            "Body too slow",
            "The body was not complete within `server.body_timeout`.",
            "Send the whole body at once, on a new connection.";
        BodyTooLarge "body_too_large" 413:
            "Body too large",
            "The body is larger than `server.body_bytes_max`, or than what servers of a cluster pass on.",
            "Send a smaller body, or raise the limit, at all servers of a cluster.";
        MediaTypeUnsupported "media_type_unsupported" 415:
            "Unsupported content type",
            "`Content-Type` is neither JSON nor `text/…` with a body that is JSON, or not in UTF-8. Without one, the body is taken as JSON.",
            "Send JSON with `Content-Type: application/json`.";
        EncodingUnsupported "encoding_unsupported" 415:
            "Unsupported content encoding",
            "The body is compressed.",
            "Send it uncompressed, without `Content-Encoding`.";
    }
    "Workflows and executions" {
        WorkflowNotFound "workflow_not_found" 404:
            "Workflow not found",
            "No workflow has this id.",
            "`GET /workflows` lists them.";
        InputInvalid "input_invalid" 400:
            "Invalid workflow input",
            "The input does not match the input schema of the workflow; nothing was started.",
            "The text names the path in the input. `GET /workflows/:id` shows the schema.";
        ExecutionFailed "execution_failed" 500:
            "Workflow failed",
            "A step of the execution failed, and had no attempts left.",
            "The state of the execution in `x-execution-id` names the step and the reason. On OpenAI's \
             routes the status is 422, as its clients repeat what fails with 500.";
        ExecutionNotFound "execution_not_found" 404:
            "Execution not found",
            "This workflow has no execution with this id.",
            "`GET /workflows/executions` lists them; check the workflow in the path.";
        ExecutionExists "execution_exists" 409:
            "Execution already exists",
            "`options.executionId` is the id of an existing execution, which is unchanged.",
            "Choose another id, or none; to retry safely, use `Idempotency-Key`.";
        ExecutionNotRunning "execution_not_running" 400:
            "Execution not running",
            "An execution that is suspended or has ended cannot be suspended; one that has ended \
             cannot be cancelled.",
            "Check its state; nothing was changed.";
        ExecutionCompensates "execution_compensates" 409:
            "Execution compensates",
            "The execution has failed or was cancelled, and undoes its completed steps before it ends.",
            "Wait for its end. Compensations that failed wait in the inbox for a person.";
        NotSuspended "not_suspended" 404:
            "Execution not suspended",
            "The execution does not wait for a resume.",
            "Check its state; another caller may have resumed it already.";
        StepNotFound "step_not_found" 400:
            "Step not found",
            "`options.stepId` is not a step of the execution.",
            "Name a step that its state shows as suspended.";
        StepNotSuspended "step_not_suspended" 400:
            "Step not suspended",
            "`options.stepId` is a step that does not wait for a resume.",
            "Name a step that its state shows as suspended.";
        StepAmbiguous "step_ambiguous" 400:
            "Step ambiguous",
            "Several steps are waiting, and the resume names none of them, or matches several.",
            "Set `options.stepId` to one of the paths in the text, or `options.suspensionId` to \
             the `id` of a suspension.";
        StepAsks "step_asks" 409:
            "Step waits for its agent",
            "The step waits for answers to what its agent asks, such as approvals of tools; a \
             resume of the step does not answer them.",
            "Answer the asks of its execution, which `GET /inbox` lists; the step continues after \
             the last one.";
        SuspensionPassed "suspension_passed" 409:
            "Suspension passed",
            "`options.suspensionId` is a suspension that no longer waits: it was resumed, its \
             deadline passed, or it never existed.",
            "The text names what waits now; check it before you resume it.";
        StepNotReplayable "step_not_replayable" 400:
            "Step not replayable",
            "The step is inside a block, or the execution has not reached it; or no step is named, \
             and none failed or a person skipped a compensation.",
            "Name one of the steps in the text.";
        DefinitionDiffers "definition_differs" 409:
            "Definition differs",
            "The current definition differs from the recorded one in the steps before the named \
             one.",
            "The text names the first difference. Replay from a step before it, or with the \
             original definition.";
        StepDoesNotSuspend "step_does_not_suspend" 400:
            "Step does not suspend",
            "The replay has `resumeData`, but its step does not suspend.",
            "Remove `resumeData`.";
        ResumeDataInvalid "resume_data_invalid" 400:
            "Invalid resume data",
            "`resumeData` does not match the resume schema; the execution stays suspended.",
            "The text names the path in the data.";
        IdempotencyKeyReused "idempotency_key_reused" 409:
            "Idempotency key reused",
            "The `Idempotency-Key` was used before, with another body.",
            "Use a new key for each new request.";
    }
    "Inbox" {
        AskNotFound "ask_not_found" 404:
            "Ask not found",
            "No ask has this id, or its execution belongs to another user.",
            "`GET /inbox?state=all` lists them; asks are deleted with their executions.";
        AskAnswered "ask_answered" 409:
            "Ask already answered",
            "Another answer was first; this one changed nothing.",
            "The text names the time and the user, if known.";
        AskAmbiguous "ask_ambiguous" 409:
            "Ask ambiguous",
            "The call of an agent shows, or has shown, several asks of the agent that it calls; an \
             approval by the call could answer another one than meant.",
            "Answer the asks in the text by their ids, in the inbox or the chat.";
        AskExpired "ask_expired" 409:
            "Ask expired",
            "The deadline passed before an answer, and `on_timeout` of the step or tool was applied.",
            "Check the state of the execution.";
        AskWithdrawn "ask_withdrawn" 409:
            "Ask withdrawn",
            "What waited for the answer was cancelled or has ended.",
            "Check the state of the execution.";
        NotAssigned "not_assigned" 403:
            "Not assigned",
            "The ask names users or roles, and the caller is not among them, or is the one who asked; \
             or a direct call of a tool needs the approval of others; or an approval accepts a changed \
             tool for all its calls, which a rule under `[auth]` leaves to others.",
            "`to` of the ask says who is asked; one of them answers, or assigns it anew. One of \
             them may call the tool, or an agent asks them. The text says what an approval needs.";
        AnswerRefused "answer_refused" 403:
            "Answer refused",
            "The program that serves checks answers, and refused this one; nothing was changed.",
            "The text has its reason. A check that fails or takes longer than 10 s refuses too: \
             the log says so, and the answer can be sent again.";
        AskClaimed "ask_claimed" 409:
            "Ask claimed",
            "Another user has claimed the ask and is about to answer; nothing was changed.",
            "The text names the user and the end of the claim; `force` of a role in \
             `inbox.force_roles` passes over it.";
        AskChanged "ask_changed" 412:
            "Ask changed",
            "The ask has another revision than `If-Match` names; nothing was changed.",
            "Read the ask again, and repeat the request with its `ETag`.";
        AnswerInvalid "answer_invalid" 400:
            "Invalid answer",
            "`data` does not match the schema of the ask, which stays open.",
            "The text names the path in the data. `GET /inbox/:askId` shows the schema.";
        LinksOff "links_off" 400:
            "Links are off",
            "The configuration has no secret to sign links to asks with.",
            "Set `secret` and `base_url` under `[inbox]`.";
        LinkInvalid "link_invalid" 404:
            "Invalid link",
            "The link was damaged or shortened on its way, or was not made with the secret that the \
             server has now.",
            "Copy the whole link, or ask for another one (`POST /inbox/:askId/link`).";
        LinkExpired "link_expired" 410:
            "Link expired",
            "The time of the link is over; the ask itself may still be open.",
            "Ask for another link (`POST /inbox/:askId/link`).";
    }
    "Agents and generations" {
        ModelNotFound "model_not_found" 404:
            "Model not found",
            "No agent or workflow that OpenAI's clients may use has this name.",
            "`/v1/models` lists them; `[faces.openai]` chooses them.";
        AgentNotFound "agent_not_found" 404:
            "Agent not found",
            "No agent has this id.",
            "`GET /agents` lists them.";
        SchemaInvalid "schema_invalid" 400:
            "Invalid schema",
            "The `schema` of the body is not a JSON Schema that can be checked in bounded time.",
            "The text says what is wrong with it.";
        ProviderError "provider_error" 500:
            "Provider failed",
            "The provider of the model refused, failed or was unreachable, and so did those in \
             `fallback`.",
            "The text is that of the provider. If it concerns the request, change the request; \
             otherwise try again.";
        ProviderRateLimited "provider_rate_limited" 500:
            "Provider is rate limited",
            "The provider of the model limits the rate of requests.",
            "Try again later; `fallback` names alternative models.";
        ProviderAuth "provider_auth" 500:
            "Provider refused the key",
            "The provider of the model does not accept the configured key.",
            "Check the secret that `api_key` of the provider names.";
        ProviderTimeout "provider_timeout" 500:
            "Provider too slow",
            "The provider of the model did not answer in time, or stopped sending.",
            "Try again; the timeouts are set for the provider in the configuration.";
        GenerationFailed "generation_failed" 500:
            "Generation failed",
            "The agent could not answer, or its object did not match the schema after retries.",
            "The text gives the reason; the agent's history shows every turn.";
        GenerationCancelled "generation_cancelled" 500:
            "Generation cancelled",
            "The generation was cancelled before it had an answer.",
            "Send the request again if you did not cancel it.";
        GenerationNotFound "generation_not_found" 404:
            "Generation not found",
            "The agent has no generation with this id.",
            "Take the id from `x-generation-id` or `GET /agents/:id/history`.";
        GenerationExists "generation_exists" 409:
            "Generation already exists",
            "`options.generationId` is the id of an existing generation, which is unchanged; or the \
             `Idempotency-Key` of a completion of an agent was used before.",
            "Choose another id or key, or none. After a broken connection: the first request arrived, \
             and the agent's history shows its result.";
        GenerationNotRunning "generation_not_running" 400:
            "Generation not running",
            "The generation has already ended and cannot be cancelled.",
            "Nothing to do.";
    }
    "Tools" {
        ToolNotFound "tool_not_found" 404:
            "Tool not found",
            "No tool has this id.",
            "`GET /tools` lists them.";
        ServerNotFound "mcp_server_not_found" 404:
            "MCP server not found",
            "No MCP server has this name.",
            "`GET /tools/mcp` lists them.";
        ToolChanged "mcp_tool_changed" 409:
            "Tool has changed again",
            "A definition of a tool of an MCP server was to be accepted, and the tool has another one by \
             now; nothing was accepted.",
            "`GET /tools/mcp` shows the definition that it has; accept that one.";
        ToolInputInvalid "tool_input_invalid" 400:
            "Invalid tool input",
            "The input does not match the parameters of the tool; it was not called.",
            "The text names the path in the input. `GET /tools` shows the parameters.";
        ToolFailed "tool_failed" 500:
            "Tool failed",
            "The tool was called and failed, timed out, or returned too much data.",
            "The text gives the reason.";
    }
    "Memory" {
        AgentRequired "agent_required" 400:
            "Agent required",
            "`agentId` is missing, and the server has several agents or none.",
            "Set it to one of the ids in the text.";
        MemoryOff "memory_off" 400:
            "Agent without memory",
            "The agent keeps no conversations.",
            "Name another agent, or enable its `memory`.";
        ConversationNotFound "conversation_not_found" 404:
            "Conversation not found",
            "The agent and this user have no conversation with this id.",
            "`GET /api/memory/conversations` lists them.";
        ConversationExists "conversation_exists" 409:
            "Conversation already exists",
            "The id of the new conversation is in use; the existing one is unchanged.",
            "Choose another id, or none.";
    }
    "Traces" {
        TraceNotFound "trace_not_found" 404:
            "Trace not found",
            "No trace that the caller may see has this id.",
            "`GET /observability/traces` lists them; ids have 32 lower-case hexadecimal digits.";
        SpanNotFound "span_not_found" 404:
            "Span not found",
            "No span that the caller may see has this id.",
            "Take an id from a trace; ids have 16 lower-case hexadecimal digits.";
    }
    "Updates and environment" {
        UpdatesUnchecked "updates_unchecked" 500:
            "Updates not checked",
            "The registry under `[updates]` is unreachable, or its answer is invalid.",
            "The text gives the reason; check the address and the network.";
        InstallOff "install_off" 400:
            "No install command",
            "Updates cannot be installed: no install command is configured.",
            "Set `install` under `[updates]`.";
        PackageNotFound "package_not_found" 404:
            "Package not found",
            "The server does not check for updates of this package.",
            "Use a name that `GET /updates` lists, or none.";
        InstallRunning "install_running" 409:
            "Already installing",
            "The install command is still running; only one can run at a time.",
            "Wait until it has ended.";
        InstallFailed "install_failed" 500:
            "Not installed",
            "The install command could not be started, failed, or timed out.",
            "The text says which; the end of its output is in the log.";
        EnvironmentFileFailed "environment_file_failed" 500:
            "Environment file not written",
            "The file under `[system]` cannot be read or replaced; it is unchanged.",
            "The reason is in the log: a missing folder, permissions, a full disk.";
    }
    "The server" {
        Draining "draining" 503 wait 5:
            "Shutting down",
            "The server is shutting down. Recorded executions continue after its next start, \
             or at another server of the database.",
            "Try again, with the same `Idempotency-Key` if there is one.";
        Busy "busy" 503 wait 1:
            "Busy",
            "The queue of the server, or of one execution, is full.",
            "Try again at a lower rate.";
        ExecutionMoved "execution_moved" 503 wait 1:
            "Execution moved",
            "Another server took the execution over while the request waited for it, or its server \
             does not answer. The request may or may not have been carried out.",
            "Look at the state of the execution that `x-execution-id` names, or repeat the request \
             if it has an `Idempotency-Key`. If no execution is named, nothing was recorded: try \
             again.";
        ServerUnreachable "server_unreachable" 503 wait 1:
            "Server not reachable",
            "Another server over the same store, which has part of what the request is about, cannot \
             be reached. The request may or may not have been carried out there.",
            "Try again. Within seconds the server is reached again, or others have taken its place.";
        AtCapacity "at_capacity" 503 wait 5:
            "At capacity",
            "A limit is reached: connections or streams, in total or from one address, bytes that \
             are queued for slow clients, or memory of executions.",
            "Try again after `Retry-After`, and close unused connections. The text names what is \
             full; the limits are under `[limits]`.";
        StoreUnavailable "store_unavailable" 503 wait 1:
            "Store not available",
            "The store rejects reads or writes: a full disk, a locked or damaged file, a database \
             that does not answer.",
            "Try again, unless the answer names an execution in `x-execution-id`: the request was \
             accepted, and is carried out when the store recovers; ask for the state before you \
             repeat it. A generation named in `x-generation-id` has ended, or continues when the \
             store recovers if it had called tools: its record says which. Without either, nothing was accepted. If it \
             persists, see the log.";
        RecordCorrupt "record_corrupt" 500:
            "Invalid record",
            "The stored data of one execution, generation or conversation is damaged, or was \
             written by another program. Everything else works; lists omit it.",
            "The text names it, and the log gives the reason. Restore it from a backup if it is \
             needed.";
        Internal "internal" 500:
            "Internal server error",
            "A bug in the server. The cause is only in the log.",
            "Read the log and report the bug.";
    }
}
