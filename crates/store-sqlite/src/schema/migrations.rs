//! Migrations of the tables, from version to version.

/// Schema version that this build writes and reads; `user_version` of the file.
pub(crate) const VERSION: i32 = 11;

/// Migrations; number `i` leads from version `i` to `i + 1`.
pub(crate) const MIGRATIONS: [&str; VERSION as usize] =
    [V1, V2, V3, V4, V5, V6, V7, V8, V9, V10, V11];

const V1: &str = "
CREATE TABLE executions (
    n             INTEGER PRIMARY KEY,
    id            TEXT    NOT NULL UNIQUE,
    workflow      TEXT    NOT NULL,
    status        INTEGER NOT NULL,
    created       INTEGER NOT NULL,
    updated       INTEGER NOT NULL,
    ended         INTEGER,
    last_seq      INTEGER NOT NULL,
    definition    TEXT    NOT NULL,
    user_id       TEXT,
    conversation  TEXT,
    parent        TEXT,
    parent_path   TEXT,
    trace         TEXT    NOT NULL,
    parent_span   TEXT,
    root_workflow TEXT    NOT NULL,
    suspension    BLOB,
    events        BLOB
) STRICT;
CREATE INDEX by_status ON executions (status, created);
CREATE INDEX by_workflow ON executions (workflow, status, created);
CREATE INDEX by_user ON executions (user_id, created) WHERE user_id IS NOT NULL;
CREATE INDEX running ON executions (status) WHERE status = 0;

CREATE TABLE chunks (
    execution INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    part      INTEGER NOT NULL,
    events    BLOB    NOT NULL,
    PRIMARY KEY (execution, last, part)
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshots (
    execution INTEGER PRIMARY KEY,
    last_seq  INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    part      INTEGER NOT NULL,
    state     BLOB    NOT NULL
) STRICT;

CREATE TABLE timers (
    execution TEXT    NOT NULL,
    key       TEXT    NOT NULL,
    due       INTEGER NOT NULL,
    PRIMARY KEY (execution, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX timers_due ON timers (due);

CREATE TABLE idempotency (
    scope     TEXT    NOT NULL PRIMARY KEY,
    body_hash TEXT    NOT NULL,
    execution TEXT    NOT NULL,
    after_seq INTEGER NOT NULL,
    expires   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_expires ON idempotency (expires);

CREATE TABLE definitions (
    hash TEXT NOT NULL PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;

CREATE TABLE generations (
    n            INTEGER PRIMARY KEY,
    id           TEXT    NOT NULL UNIQUE,
    agent        TEXT    NOT NULL,
    status       INTEGER NOT NULL,
    started      INTEGER NOT NULL,
    ended        INTEGER,
    input        BLOB    NOT NULL,
    output       BLOB,
    usage        BLOB,
    error        TEXT,
    user_id      TEXT,
    conversation TEXT
) STRICT;
CREATE INDEX by_agent ON generations (agent, started);
CREATE INDEX working ON generations (status) WHERE status = 0;

CREATE TABLE probe (
    n       INTEGER PRIMARY KEY,
    padding BLOB NOT NULL
) STRICT;
";

const V2: &str = "
DROP INDEX by_agent;
DROP INDEX working;
ALTER TABLE generations RENAME TO generations_1;
CREATE TABLE generations (
    n            INTEGER PRIMARY KEY,
    id           TEXT    NOT NULL UNIQUE,
    agent        TEXT    NOT NULL,
    number       INTEGER NOT NULL,
    status       INTEGER NOT NULL,
    started      INTEGER NOT NULL,
    ended        INTEGER,
    input        BLOB    NOT NULL,
    output       BLOB,
    usage        BLOB,
    error        TEXT,
    user_id      TEXT,
    conversation TEXT,
    execution    TEXT,
    path         TEXT,
    steps        BLOB
) STRICT;
INSERT INTO generations (n, id, agent, number, status, started, ended, input, output, usage,
    error, user_id, conversation)
    SELECT n, id, agent, row_number() OVER (PARTITION BY agent ORDER BY n), status, started, ended,
        input, output, usage, error, user_id, conversation FROM generations_1 ORDER BY n;
DROP TABLE generations_1;
CREATE UNIQUE INDEX generations_by_agent ON generations (agent, number);
CREATE INDEX generations_by_user ON generations (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX working ON generations (status) WHERE status = 0;

CREATE TABLE steps (
    generation INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    body       BLOB    NOT NULL,
    PRIMARY KEY (generation, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE forgotten (
    agent TEXT    NOT NULL,
    block INTEGER NOT NULL,
    count INTEGER NOT NULL,
    last  INTEGER NOT NULL,
    PRIMARY KEY (agent, block)
) STRICT, WITHOUT ROWID;

CREATE TABLE memories (
    n     INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    user  TEXT NOT NULL,
    UNIQUE (user, agent)
) STRICT;

CREATE TABLE conversations (
    n              INTEGER PRIMARY KEY,
    memory         INTEGER NOT NULL,
    id             TEXT    NOT NULL,
    agent          TEXT    NOT NULL,
    user           TEXT    NOT NULL,
    title          TEXT,
    metadata       BLOB    NOT NULL,
    working_memory TEXT,
    created        INTEGER NOT NULL,
    updated        INTEGER NOT NULL,
    UNIQUE (memory, id)
) STRICT;
CREATE INDEX conversations_by_agent ON conversations (agent, updated);
CREATE INDEX conversations_by_user ON conversations (user, updated);
CREATE INDEX conversations_by_change ON conversations (updated);

CREATE TABLE messages (
    n            INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL,
    id           TEXT    NOT NULL,
    role         INTEGER NOT NULL,
    parts        BLOB    NOT NULL,
    created      INTEGER NOT NULL,
    generation   TEXT,
    UNIQUE (conversation, id)
) STRICT;
CREATE INDEX messages_by_conversation ON messages (conversation);

CREATE VIRTUAL TABLE messages_text USING fts5(
    text, content='', contentless_delete=1, tokenize='trigram case_sensitive 1'
);
";

const V3: &str = "
DROP INDEX generations_by_user;
CREATE INDEX generations_by_user ON generations (user_id, agent, number)
    WHERE user_id IS NOT NULL;
";

const V4: &str = "
ALTER TABLE executions ADD COLUMN joined INTEGER;
ALTER TABLE executions ADD COLUMN around BLOB DEFAULT x'7b7d';
UPDATE executions SET joined = iif(parent_span IS NULL, 0, 1)
    WHERE parent_span IS NOT NULL OR id <> substr(trace, 1, 8) || '-' || substr(trace, 9, 4) || '-'
        || substr(trace, 13, 4) || '-' || substr(trace, 17, 4) || '-' || substr(trace, 21);
CREATE INDEX executions_by_trace ON executions (trace) WHERE joined IS NOT NULL;

ALTER TABLE generations ADD COLUMN trace TEXT;
ALTER TABLE generations ADD COLUMN joined INTEGER;
ALTER TABLE generations ADD COLUMN around BLOB DEFAULT x'7b7d';
UPDATE generations SET joined = 1 WHERE execution IS NOT NULL;
CREATE INDEX generations_by_trace ON generations (trace) WHERE trace IS NOT NULL;
CREATE INDEX generations_by_root ON generations (user_id)
    WHERE user_id IS NOT NULL AND joined IS NOT 1;

CREATE TABLE logs (
    n            INTEGER PRIMARY KEY,
    at           INTEGER NOT NULL,
    level        INTEGER NOT NULL,
    target       TEXT    NOT NULL,
    trace        TEXT,
    span         TEXT,
    execution    TEXT,
    parent       TEXT,
    workflow     TEXT,
    generation   TEXT,
    agent        TEXT,
    conversation TEXT,
    user_id      TEXT,
    request      TEXT,
    attributes   BLOB,
    message      TEXT    NOT NULL
) STRICT;
CREATE INDEX logs_by_trace ON logs (trace) WHERE trace IS NOT NULL;
CREATE INDEX logs_by_execution ON logs (execution) WHERE execution IS NOT NULL;
CREATE INDEX logs_by_parent ON logs (parent) WHERE parent IS NOT NULL;
CREATE INDEX logs_by_user ON logs (user_id) WHERE user_id IS NOT NULL;
";

/// Adds the users who suspended, resumed, cancelled or replayed executions; older facts name none.
/// Errors of older executions are taken from their last fact, in the newest chunk or in the row.
const V5: &str = "
ALTER TABLE executions ADD COLUMN error BLOB;
UPDATE executions SET error = (
    SELECT CAST(json_object('message', substr(json_extract(fact, '$.error'), 1, 500),
        'step_id', json_extract(fact, '$.step_id')) AS BLOB)
    FROM (SELECT json_extract(iif(json_valid(facts), facts, '[]'), '$[#-1].f.WorkflowFailed') AS fact
        FROM (SELECT CAST(ifnull((SELECT c.events FROM chunks c WHERE c.execution = executions.n
            ORDER BY c.last DESC, c.part DESC LIMIT 1), executions.events) AS TEXT) AS facts))
    WHERE json_extract(fact, '$.error') IS NOT NULL)
    WHERE status = 2;

CREATE TABLE execution_counts (
    workflow TEXT    NOT NULL,
    status   INTEGER NOT NULL,
    count    INTEGER NOT NULL,
    PRIMARY KEY (workflow, status)
) STRICT, WITHOUT ROWID;
INSERT INTO execution_counts (workflow, status, count)
    SELECT workflow, status, count(*) FROM executions INDEXED BY by_workflow
    GROUP BY workflow, status;

CREATE TABLE acted (
    user_id   TEXT    NOT NULL,
    execution INTEGER NOT NULL,
    PRIMARY KEY (user_id, execution)
) STRICT, WITHOUT ROWID;
CREATE INDEX acted_on ON acted (execution);
";

/// Older rows do not name the execution that they replay; their facts and states do.
const V6: &str = "
CREATE INDEX by_end ON executions (status, ended) WHERE ended IS NOT NULL;
ALTER TABLE executions ADD COLUMN replayed_from TEXT;
ALTER TABLE executions ADD COLUMN replayed_step TEXT;
CREATE INDEX replays ON executions (replayed_from, created) WHERE replayed_from IS NOT NULL;
";

/// Numbers the appends of older executions: by their chunks, so that no number is below the parts of
/// those.
const V7: &str = "
ALTER TABLE executions ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
UPDATE executions SET revision = counted.chunks
    FROM (SELECT execution, count(*) AS chunks FROM chunks GROUP BY execution) AS counted
    WHERE counted.execution = executions.n;
";

/// Executions of older versions have no asks here, and generations no continuations.
const V8: &str = "
ALTER TABLE executions ADD COLUMN has_asks INTEGER NOT NULL DEFAULT 0;
CREATE INDEX executions_without_asks ON executions (n) WHERE has_asks = 0 AND ended IS NULL;
CREATE TABLE asks (
    n             INTEGER PRIMARY KEY,
    id            TEXT    NOT NULL UNIQUE,
    execution     INTEGER,
    generation    INTEGER,
    kind          INTEGER NOT NULL,
    state         INTEGER NOT NULL,
    opened        INTEGER NOT NULL,
    due           INTEGER NOT NULL,
    closed        INTEGER,
    workflow      TEXT,
    agent         TEXT,
    path          TEXT    NOT NULL,
    tool          TEXT,
    user_id       TEXT,
    reason        TEXT    NOT NULL,
    revision      INTEGER NOT NULL DEFAULT 0,
    rules         TEXT,
    claimed_by    TEXT,
    claimed_until INTEGER,
    next_due      INTEGER,
    details       TEXT,
    answer        TEXT,
    answered_by   TEXT
) STRICT;
CREATE INDEX asks_open ON asks (due, opened) WHERE state = 0;
CREATE INDEX asks_open_by_workflow ON asks (workflow, due, opened)
    WHERE state = 0 AND workflow IS NOT NULL;
CREATE INDEX asks_open_by_agent ON asks (agent, due, opened)
    WHERE state = 0 AND agent IS NOT NULL;
CREATE INDEX asks_open_by_user ON asks (user_id, due, opened)
    WHERE state = 0 AND user_id IS NOT NULL;
CREATE INDEX asks_due ON asks (next_due) WHERE state = 0 AND next_due IS NOT NULL;
CREATE INDEX asks_closed ON asks (closed) WHERE closed IS NOT NULL;
CREATE INDEX asks_claimed ON asks (claimed_by) WHERE claimed_by IS NOT NULL;
CREATE INDEX asks_answered ON asks (answered_by) WHERE answered_by IS NOT NULL;
CREATE INDEX asks_of ON asks (execution) WHERE execution IS NOT NULL;
CREATE INDEX asks_of_generation ON asks (generation) WHERE generation IS NOT NULL;

CREATE TABLE continuations (
    generation INTEGER PRIMARY KEY,
    revision   INTEGER NOT NULL,
    body       TEXT    NOT NULL
) STRICT;
CREATE INDEX suspended ON generations (conversation) WHERE status = 4;
";

/// `asks_assigned` finds the asks that name a user. Closed asks of a workflow, an agent or a user are
/// found without those of others.
const V9: &str = "
ALTER TABLE conversations ADD COLUMN approved TEXT;
CREATE INDEX asks_assigned ON asks (n) WHERE rules IS NOT NULL;
CREATE INDEX asks_closed_by_workflow ON asks (workflow, closed)
    WHERE closed IS NOT NULL AND workflow IS NOT NULL;
CREATE INDEX asks_closed_by_agent ON asks (agent, closed)
    WHERE closed IS NOT NULL AND agent IS NOT NULL;
CREATE INDEX asks_closed_by_user ON asks (user_id, closed)
    WHERE closed IS NOT NULL AND user_id IS NOT NULL;
";

const V10: &str = "
CREATE INDEX children ON executions (parent, created) WHERE parent IS NOT NULL;
";

/// `mcp_tools` has the tools that MCP servers were seen to have, with the accepted definition of each.
const V11: &str = "
CREATE TABLE mcp_tools (
    server     TEXT    NOT NULL,
    tool       TEXT    NOT NULL,
    first_seen INTEGER NOT NULL,
    accepted   INTEGER NOT NULL,
    hash       TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    PRIMARY KEY (server, tool)
) STRICT;
";
