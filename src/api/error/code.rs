//! Every code of a refusal: its status, what it is called, when it comes and what helps. The one
//! table; `docs/errors.md` is made from it.

use std::fmt;

/// What one line of the table says.
struct Row {
    code: &'static str,
    status: u16,
    retry_after_s: Option<u32>,
    title: &'static str,
    cause: &'static str,
    cure: &'static str,
}

macro_rules! codes {
    (@wait) => { None };
    (@wait $seconds:literal) => { Some($seconds) };
    ($($group:literal {
        $($name:ident $code:literal $status:literal $(wait $seconds:literal)? :
            $title:literal, $cause:literal, $cure:literal;)+
    })+) => {
        /// What kind of refusal it is, for programs. A code never changes once published.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $($(#[doc = $cause] $name,)+)+
        }

        impl ErrorCode {
            /// Every code, in the order of the table.
            pub const ALL: &[Self] = &[$($(Self::$name,)+)+];

            /// What the codes are about, each with its codes.
            pub const GROUPS: &[(&str, &[Self])] = &[$(($group, &[$(Self::$name,)+]),)+];

            const fn row(self) -> Row {
                match self {
                    $($(Self::$name => Row {
                        code: $code,
                        status: $status,
                        retry_after_s: codes!(@wait $($seconds)?),
                        title: $title,
                        cause: $cause,
                        cure: $cure,
                    },)+)+
                }
            }
        }
    };
}

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
            "A query parameter has a value that it cannot have.",
            "The text names the parameter and what it may be.";
        HeaderInvalid "header_invalid" 400:
            "Invalid header",
            "A header has a value that it cannot have.",
            "The text names the header and what it may be.";
        RequestInvalid "request_invalid" 400:
            "Invalid request",
            "The request cannot be read, or its body ends before it is complete.",
            "The text says what is wrong; look at what lies between client and server as well.";
        UpgradeRequired "upgrade_required" 426:
            "WebSocket only",
            "The address is for WebSockets, and the request does not open one.",
            "Use a WebSocket client, version 13; a proxy between must pass `Upgrade` on.";
        RequestRefused "request_refused" 400:
            "Refused",
            "A handler that was added to this server refused, with a status 4xx of its own choice.",
            "The text is the handler's own.";
        OriginNotAllowed "origin_not_allowed" 403:
            "Origin not allowed",
            "A web page of another origin wants to change something or to open a WebSocket.",
            "Add the origin to `origins` under `[cors]`.";
        HostNotAllowed "host_not_allowed" 403:
            "Host not allowed",
            "`Host` is a name that the server does not know as its own.",
            "Use the address that the server listens at, or add the name to `origins` under \
             `[cors]`.";
    }
    "Who asks" {
        AuthRequired "auth_required" 401:
            "Authentication required",
            "The route needs a token, and the request has none.",
            "Send `Authorization: Bearer <token>`.";
        TokenExpired "token_expired" 401:
            "Token expired",
            "The token was good once.",
            "Get a new one from whoever issued it.";
        TokenInvalid "token_invalid" 401:
            "Invalid token",
            "The token is malformed, is signed by somebody else, or is not for this server.",
            "The text gives the reason. Get a new token, or compare `[auth]` with its issuer.";
        AuthUnavailable "auth_unavailable" 503 wait 1:
            "Token cannot be checked",
            "The keys that the token is checked with cannot be had just now.",
            "Try again; if it lasts, see the log and the address of the keys under `[auth]`.";
        RoleMissing "role_missing" 403:
            "Role missing",
            "The token is good, but its user has none of the roles that the route asks for.",
            "The text names the roles; `[[auth.rules]]` says which route needs which.";
        NotYours "not_yours" 403:
            "Somebody else's",
            "What is to be changed belongs to another user.",
            "Ask with the token of that user, or of a role that may act for others.";
        LocalOnly "local_only" 403:
            "Only from its own machine",
            "The route is open to programs on the server's own machine, and this one is elsewhere.",
            "Ask from there, or send a token.";
    }
    "Bodies" {
        JsonInvalid "json_invalid" 400:
            "Invalid JSON",
            "The body is no JSON, is nested too deep, or is missing.",
            "The text gives the line and the column.";
        BodyInvalid "body_invalid" 400:
            "Invalid request body",
            "The body is JSON of the wrong shape.",
            "The text names the path in the body and what belongs there.";
        BodyTooSlow "body_too_slow" 408:
            "Body too slow",
            "The body was not complete within `server.body_timeout`.",
            "Send it in one go on a new connection.";
        BodyTooLarge "body_too_large" 413:
            "Body too large",
            "The body is larger than `server.body_bytes_max`.",
            "Send less, or raise that limit.";
        MediaTypeUnsupported "media_type_unsupported" 415:
            "Unsupported content type",
            "The body is declared as something other than JSON in UTF-8.",
            "Send JSON with `Content-Type: application/json`.";
        EncodingUnsupported "encoding_unsupported" 415:
            "Unsupported content encoding",
            "The body is compressed.",
            "Send it as it is, without `Content-Encoding`.";
    }
    "Workflows and executions" {
        WorkflowNotFound "workflow_not_found" 404:
            "Workflow not found",
            "No workflow has this id.",
            "`GET /workflows` lists them.";
        InputInvalid "input_invalid" 400:
            "Invalid workflow input",
            "The input does not meet the input schema of the workflow; nothing was started.",
            "The text names the path in the input. `GET /workflows/:id` shows the schema.";
        ExecutionFailed "execution_failed" 500:
            "Workflow failed",
            "The execution ran, and a step failed for good.",
            "The state of the execution in `x-execution-id` names the step and why it failed.";
        ExecutionNotFound "execution_not_found" 404:
            "Execution not found",
            "This workflow has no execution of this id.",
            "`GET /workflows/executions` lists them; mind the workflow in the path.";
        ExecutionExists "execution_exists" 409:
            "Execution already exists",
            "`options.executionId` names an execution that there is already; it is untouched.",
            "Choose another id, or none; to repeat a call safely, use `Idempotency-Key`.";
        ExecutionNotRunning "execution_not_running" 400:
            "Execution not running",
            "A suspend of an execution that is suspended or has ended, or a cancel of one that has \
             ended.",
            "Look at its state; nothing was changed.";
        NotSuspended "not_suspended" 404:
            "Execution not suspended",
            "A resume of an execution that waits for nobody.",
            "Look at its state; perhaps somebody else was faster.";
        StepNotFound "step_not_found" 400:
            "Step not found",
            "`options.stepId` names no step of the execution.",
            "Name a step that its state shows as suspended.";
        StepNotSuspended "step_not_suspended" 400:
            "Step not suspended",
            "`options.stepId` names a step that waits for nobody.",
            "Name a step that its state shows as suspended.";
        StepAmbiguous "step_ambiguous" 400:
            "Step ambiguous",
            "Several steps are waiting, and the resume names none, or fits several.",
            "Name one of the paths in the text in `options.stepId`, or the `id` of its suspension \
             in `options.suspensionId`.";
        SuspensionPassed "suspension_passed" 409:
            "Suspension passed",
            "`options.suspensionId` names a suspension that no longer waits: somebody answered it, \
             its deadline passed, or it was never there.",
            "Look at what waits now, which the text names, before it is answered.";
        StepNotReplayable "step_not_replayable" 400:
            "Step not replayable",
            "The step is inside a block, or the execution has not come as far; or none is named \
             and none failed.",
            "Name one of the steps in the text.";
        DefinitionDiffers "definition_differs" 409:
            "Definition differs",
            "A replay with the current definition, of which the steps before the named one are not \
             those that were recorded.",
            "The text names the first difference. Replay from a step before it, or with the \
             original definition.";
        StepDoesNotSuspend "step_does_not_suspend" 400:
            "Step does not suspend",
            "A replay brought `resumeData` for a step that asks for nothing.",
            "Leave `resumeData` out.";
        ResumeDataInvalid "resume_data_invalid" 400:
            "Invalid resume data",
            "`resumeData` does not meet the resume schema; the execution goes on waiting.",
            "The text names the path in the data.";
        IdempotencyKeyReused "idempotency_key_reused" 409:
            "Idempotency key reused",
            "The `Idempotency-Key` came before, with another body.",
            "Use a new key for each new request.";
    }
    "Agents and generations" {
        AgentNotFound "agent_not_found" 404:
            "Agent not found",
            "No agent has this id.",
            "`GET /agents` lists them.";
        SchemaInvalid "schema_invalid" 400:
            "Invalid schema",
            "The `schema` of the body is no JSON Schema that can be checked in bounded time.",
            "The text says what is wrong with it.";
        ProviderError "provider_error" 500:
            "Provider failed",
            "The provider of the model refused, failed or was not reached, and so did those in \
             `fallback`.",
            "The text is the provider's own. If it is about the request, change that; else try \
             again.";
        ProviderRateLimited "provider_rate_limited" 500:
            "Provider is rate limited",
            "The provider of the model takes no more requests for now.",
            "Try again later; `fallback` names stand-ins.";
        ProviderAuth "provider_auth" 500:
            "Provider refused the key",
            "The provider of the model does not accept the key that is configured.",
            "Check the secret that `api_key` of the provider names.";
        ProviderTimeout "provider_timeout" 500:
            "Provider too slow",
            "The provider of the model did not answer, or fell silent, for too long.",
            "Try again; the time limits are those of the provider in the configuration.";
        GenerationFailed "generation_failed" 500:
            "Generation failed",
            "The agent could not answer, or its object did not meet the schema when asked again.",
            "The text says why; the agent's history shows every turn.";
        GenerationCancelled "generation_cancelled" 500:
            "Generation cancelled",
            "Somebody cancelled the generation while its answer was waited for.",
            "Ask again if it was not you.";
        GenerationNotFound "generation_not_found" 404:
            "Generation not found",
            "The agent has no generation of this id.",
            "`x-generation-id` and `GET /agents/:id/history` name them.";
        GenerationExists "generation_exists" 409:
            "Generation already exists",
            "`options.generationId` names a generation that there is already; it is untouched.",
            "Choose another id, or none. After a broken connection: the first request arrived, \
             and the agent's history tells what came of it.";
        GenerationNotRunning "generation_not_running" 400:
            "Generation not running",
            "The generation has ended, so that it cannot be cancelled.",
            "Nothing: it is over.";
    }
    "Tools" {
        ToolNotFound "tool_not_found" 404:
            "Tool not found",
            "No tool has this id.",
            "`GET /tools` lists them.";
        ToolInputInvalid "tool_input_invalid" 400:
            "Invalid tool input",
            "The input does not meet the parameters of the tool; it was not called.",
            "The text names the path in the input. `GET /tools` shows the parameters.";
        ToolFailed "tool_failed" 500:
            "Tool failed",
            "The tool was called and failed, took too long, or gave too much.",
            "The text says why.";
    }
    "Memory" {
        AgentRequired "agent_required" 400:
            "Agent required",
            "`agentId` is missing, and there are several agents or none.",
            "Name one of those in the text.";
        MemoryOff "memory_off" 400:
            "Agent without memory",
            "The agent keeps no conversations.",
            "Name another agent, or switch its `memory` on.";
        ConversationNotFound "conversation_not_found" 404:
            "Conversation not found",
            "The agent and this user have no conversation of this id.",
            "`GET /api/memory/conversations` lists them.";
        ConversationExists "conversation_exists" 409:
            "Conversation already exists",
            "The id of a new conversation is taken; that conversation is untouched.",
            "Choose another id, or none.";
    }
    "Traces" {
        TraceNotFound "trace_not_found" 404:
            "Trace not found",
            "No trace has this id, or not for this caller.",
            "`GET /observability/traces` lists them; ids have 32 lower-case hexadecimal digits.";
        SpanNotFound "span_not_found" 404:
            "Span not found",
            "No span has this id, or not for this caller.",
            "Take an id from a trace; ids have 16 lower-case hexadecimal digits.";
    }
    "The installation" {
        UpdatesUnchecked "updates_unchecked" 500:
            "Updates not checked",
            "The registry under `[updates]` cannot be reached, or its answer cannot be read.",
            "The text says why; check the address, and what lies between.";
        InstallOff "install_off" 400:
            "No install command",
            "Updates cannot be installed, because no command is configured that does it.",
            "Write one as `install` under `[updates]`.";
        PackageNotFound "package_not_found" 404:
            "Package not found",
            "The package is not one that this server looks for.",
            "Take a name that `GET /updates` lists, or none.";
        InstallRunning "install_running" 409:
            "Already installing",
            "The install command runs once at a time, and it still runs.",
            "Wait until it has ended.";
        InstallFailed "install_failed" 500:
            "Not installed",
            "The install command could not be started, failed, or took too long.",
            "The text says which; what the command said last is in the log.";
        EnvironmentFileFailed "environment_file_failed" 500:
            "Environment file not written",
            "The file under `[system]` cannot be read or replaced; it is as it was.",
            "The reason is in the log: a missing folder, rights, a full disk.";
    }
    "The server" {
        Draining "draining" 503 wait 5:
            "Shutting down",
            "The server is about to stop. What was recorded goes on when it is back.",
            "Try again, with the same `Idempotency-Key` where there is one.";
        Busy "busy" 503 wait 1:
            "Busy",
            "More is asked of the server, or of one execution, than it can queue.",
            "Try again, more slowly.";
        AtCapacity "at_capacity" 503 wait 5:
            "At capacity",
            "As many connections or streams are open as may be, in all or from one address, too \
             many bytes wait for clients that read slowly, or the executions in memory hold as much \
             of it as they may.",
            "Try again after `Retry-After`, and close what is not read. The text says what there is no \
             room for; the bounds are under `[limits]`.";
        StoreUnavailable "store_unavailable" 503 wait 1:
            "Store not available",
            "Nothing can be recorded just now: a full disk, a locked or a broken store.",
            "Try again, unless the answer names an execution in `x-execution-id`: that one is on \
             record and goes on by itself when the store does. If it lasts, see the log.";
        RecordCorrupt "record_corrupt" 500:
            "Record makes no sense",
            "What is stored of this one execution, generation or conversation was damaged, or was \
             written by something else. Everything else goes on; lists leave it out.",
            "The text names it and the log says why, each time it is met for the first time. Take it \
             from a backup if it is needed.";
        Internal "internal" 500:
            "Internal server error",
            "A fault of the server. Its cause is in the log and nowhere else.",
            "Look there, and report it.";
    }
}

impl ErrorCode {
    /// The code itself, as `x-error-code` has it.
    pub const fn as_str(self) -> &'static str {
        self.row().code
    }

    /// The HTTP status.
    pub const fn status(self) -> u16 {
        self.row().status
    }

    /// Seconds for `Retry-After`, where waiting helps.
    pub const fn retry_after_s(self) -> Option<u32> {
        self.row().retry_after_s
    }

    /// A few words that are the same for every refusal of this code.
    pub const fn title(self) -> &'static str {
        self.row().title
    }

    /// When it comes. Markdown.
    pub const fn cause(self) -> &'static str {
        self.row().cause
    }

    /// What helps. Markdown.
    pub const fn cure(self) -> &'static str {
        self.row().cure
    }

    /// The `type` of a problem: a name, not an address.
    pub fn uri(self) -> String {
        format!("urn:greenroom:error:{self}")
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
