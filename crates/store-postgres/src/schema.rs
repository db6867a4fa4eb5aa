//! Tables and indexes of the database, and the migrations that lead to them.
//!
//! Reasons for the layout, beside those of the embedded store:
//!
//! - Texts that keys compare have the collation `C`: the order of bytes, the same on every server.
//! - `executions` leaves room in its pages, so that an update of a running execution that changes
//!   no index stays in its page. Facts of up to about 2 kB stay in the row.
//! - `chunks` is only inserted into; `revision` numbers the appends of an execution, so that no
//!   append reads before it writes.
//! - `execution_counts` has one row per lane of each server, because lanes that commit at the same
//!   time would wait for each other's row. Reads add them up.
//! - `agents` has the newest number of each agent's history, under a lock: numbers have no gap
//!   although many servers write.
//! - `messages.place` numbers the messages of a conversation, from its row, which every writer
//!   locks; `n` orders the messages of a user, and has no index without `memory`: a search along it
//!   would pass the messages of all users.
//! - `meta.incomplete` is true while the tables are filled from another store: no server opens them
//!   before that is complete.
//! - Rows that change all the time (`nodes`, `lanes`, `execution_counts`, `slots`) have room in their
//!   pages and no index on what changes. Each creation reads `nodes_by_schema`.
//! - `nodes.lease` is in milliseconds; a server without one has the database alone. `nodes.state` is
//!   0, 1 for a member that leaves, and 2 for one that is gone.
//! - `slots` has the owner of each slot while members share the database; `meta.map` counts its
//!   changes, so that members need not read it with each beat.
//! - Rows of `asks` are updated when they close, which takes them out of the indexes of open ones,
//!   and when their claim or assignment changes, which is rare.
//! - `continuations` is written with each turn of those generations that have one.
//! - Running executions have two indexes: one in the order in which they are listed, and one for
//!   lists of few slots.

use crate::migration::Step;

/// Extensions that the indexes need; both are part of PostgreSQL's additional modules.
pub(crate) const EXTENSIONS: [&str; 2] = ["pg_trgm", "btree_gin"];

/// Migrations; number `i` leads from version `i` to `i + 1` of the tables, which is in
/// `meta.schema`. Servers that know version 1 can work on all of them.
pub(crate) const STEPS: [Step; 7] = [
    Step { sql: V1, least: 1 },
    Step { sql: V2, least: 1 },
    Step { sql: V3, least: 1 },
    Step { sql: V4, least: 1 },
    Step { sql: V5, least: 1 },
    Step { sql: V6, least: 1 },
    Step { sql: V7, least: 1 },
];

const V1: &str = r#"
CREATE TABLE meta (
    one        smallint PRIMARY KEY CHECK (one = 1),
    program    text     NOT NULL,
    schema     int      NOT NULL,
    cluster    uuid     NOT NULL,
    incomplete boolean  NOT NULL DEFAULT false
);
INSERT INTO meta (one, program, schema, cluster) VALUES (1, 'greenroom', 0, gen_random_uuid());

CREATE SEQUENCE node_seq;
CREATE TABLE nodes (
    node    bigint   PRIMARY KEY,
    name    text     NOT NULL,
    version text     NOT NULL,
    state   smallint NOT NULL,
    beat    bigint   NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE lanes (
    node    bigint   NOT NULL,
    lane    smallint NOT NULL,
    session bigint   NOT NULL,
    batch   bigint   NOT NULL,
    PRIMARY KEY (node, lane)
) WITH (fillfactor = 10);

CREATE SEQUENCE execution_rows INCREMENT BY 4096;
CREATE TABLE executions (
    n             bigint   PRIMARY KEY,
    created       bigint   NOT NULL,
    updated       bigint   NOT NULL,
    ended         bigint,
    last_seq      bigint   NOT NULL,
    revision      bigint   NOT NULL,
    status        smallint NOT NULL,
    slot          smallint NOT NULL,
    joined        smallint,
    id            text     COLLATE "C" NOT NULL CONSTRAINT executions_id UNIQUE,
    workflow      text     COLLATE "C" NOT NULL,
    definition    text     COLLATE "C" NOT NULL,
    user_id       text     COLLATE "C",
    conversation  text     COLLATE "C",
    parent        text     COLLATE "C",
    parent_path   text     COLLATE "C",
    trace         text     COLLATE "C" NOT NULL,
    parent_span   text     COLLATE "C",
    root_workflow text     COLLATE "C" NOT NULL,
    replayed_from text     COLLATE "C",
    replayed_step text     COLLATE "C",
    around        bytea,
    suspension    bytea,
    error         bytea,
    events        bytea
) WITH (fillfactor = 85, toast_tuple_target = 4080);
CREATE INDEX by_status ON executions (status, created, n);
CREATE INDEX by_workflow ON executions (workflow, status, created, n);
CREATE INDEX by_user ON executions (user_id, created, n) WHERE user_id IS NOT NULL;
CREATE INDEX by_end ON executions (status, ended, n) WHERE ended IS NOT NULL;
CREATE INDEX by_workflow_end ON executions (workflow, status, ended, n) WHERE ended IS NOT NULL;
CREATE INDEX replays ON executions (replayed_from, created, n) WHERE replayed_from IS NOT NULL;
CREATE INDEX running ON executions (n) WHERE status = 0;
CREATE INDEX executions_by_trace ON executions (trace, n) WHERE joined IS NOT NULL;

CREATE TABLE chunks (
    execution bigint NOT NULL,
    last      bigint NOT NULL,
    revision  bigint NOT NULL,
    events    bytea  NOT NULL,
    PRIMARY KEY (execution, last, revision)
);
CREATE TABLE snapshots (
    execution bigint PRIMARY KEY,
    last_seq  bigint NOT NULL,
    last      bigint NOT NULL,
    revision  bigint NOT NULL,
    state     bytea  NOT NULL
);
CREATE TABLE timers (
    execution text     COLLATE "C" NOT NULL,
    key       text     COLLATE "C" NOT NULL,
    slot      smallint NOT NULL,
    due       bigint   NOT NULL,
    PRIMARY KEY (execution, key)
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX timers_due ON timers (due);

CREATE TABLE idempotency (
    scope     text   COLLATE "C" PRIMARY KEY,
    body_hash text   COLLATE "C" NOT NULL,
    execution text   COLLATE "C" NOT NULL,
    after_seq bigint NOT NULL,
    expires   bigint NOT NULL
);
CREATE INDEX idempotency_expires ON idempotency (expires);

CREATE TABLE definitions (
    hash text  COLLATE "C" PRIMARY KEY,
    body bytea NOT NULL
);
CREATE TABLE execution_counts (
    workflow text     COLLATE "C" NOT NULL,
    status   smallint NOT NULL,
    node     bigint   NOT NULL,
    lane     smallint NOT NULL,
    count    bigint   NOT NULL,
    PRIMARY KEY (workflow, status, node, lane)
) WITH (fillfactor = 50);
CREATE TABLE acted (
    user_id   text   COLLATE "C" NOT NULL,
    execution bigint NOT NULL,
    PRIMARY KEY (user_id, execution)
);
CREATE INDEX acted_on ON acted (execution);

CREATE TABLE agents (
    agent text   COLLATE "C" PRIMARY KEY,
    last  bigint NOT NULL
) WITH (fillfactor = 50);
CREATE SEQUENCE generation_rows INCREMENT BY 4096;
CREATE TABLE generations (
    n            bigint   PRIMARY KEY,
    number       bigint   NOT NULL,
    started      bigint   NOT NULL,
    ended        bigint,
    node         bigint   NOT NULL,
    status       smallint NOT NULL,
    joined       smallint,
    id           text     COLLATE "C" NOT NULL UNIQUE,
    agent        text     COLLATE "C" NOT NULL,
    user_id      text     COLLATE "C",
    conversation text     COLLATE "C",
    execution    text     COLLATE "C",
    path         text     COLLATE "C",
    trace        text     COLLATE "C",
    error        text     COLLATE "C",
    around       bytea,
    usage        bytea,
    input        bytea    NOT NULL,
    output       bytea,
    steps        bytea,
    UNIQUE (agent, number)
) WITH (fillfactor = 85, toast_tuple_target = 4080);
CREATE INDEX generations_by_user ON generations (user_id, agent, number) WHERE user_id IS NOT NULL;
CREATE INDEX generations_by_root ON generations (user_id, n)
    WHERE user_id IS NOT NULL AND joined IS DISTINCT FROM 1;
CREATE INDEX generations_by_trace ON generations (trace, n) WHERE trace IS NOT NULL;
CREATE INDEX working ON generations (agent, conversation, n) WHERE status = 0;

CREATE TABLE steps (
    generation bigint NOT NULL,
    number     int    NOT NULL,
    body       bytea  NOT NULL,
    PRIMARY KEY (generation, number)
);
CREATE TABLE forgotten (
    agent text   COLLATE "C" NOT NULL,
    block bigint NOT NULL,
    count bigint NOT NULL,
    last  bigint NOT NULL,
    PRIMARY KEY (agent, block)
);

CREATE TABLE memories (
    n     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    agent text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    UNIQUE (owner, agent)
);
CREATE TABLE conversations (
    n              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    memory         bigint NOT NULL,
    created        bigint NOT NULL,
    updated        bigint NOT NULL,
    next           bigint NOT NULL,
    id             text   COLLATE "C" NOT NULL,
    agent          text   COLLATE "C" NOT NULL,
    owner          text   COLLATE "C" NOT NULL,
    title          text   COLLATE "C",
    metadata       bytea  NOT NULL,
    working_memory text   COLLATE "C",
    UNIQUE (memory, id)
) WITH (fillfactor = 85);
CREATE INDEX conversations_by_agent ON conversations (agent, updated, n);
CREATE INDEX conversations_by_owner ON conversations (owner, updated, n);
CREATE INDEX conversations_by_change ON conversations (updated, n);
CREATE TABLE messages (
    conversation bigint   NOT NULL,
    place        bigint   NOT NULL,
    n            bigint   GENERATED ALWAYS AS IDENTITY,
    memory       bigint   NOT NULL,
    created      bigint   NOT NULL,
    role         smallint NOT NULL,
    id           text     COLLATE "C" NOT NULL,
    generation   text     COLLATE "C",
    parts        bytea    NOT NULL,
    folded       text     COLLATE "C" NOT NULL,
    PRIMARY KEY (conversation, place),
    UNIQUE (conversation, id)
);
CREATE INDEX messages_by_memory ON messages (memory, n);
CREATE INDEX messages_text ON messages USING gin (memory, folded gin_trgm_ops);

CREATE SEQUENCE log_rows;
CREATE TABLE logs (
    n            bigint   PRIMARY KEY,
    at           bigint   NOT NULL,
    level        smallint NOT NULL,
    target       text     COLLATE "C" NOT NULL,
    trace        text     COLLATE "C",
    span         text     COLLATE "C",
    execution    text     COLLATE "C",
    parent       text     COLLATE "C",
    workflow     text     COLLATE "C",
    generation   text     COLLATE "C",
    agent        text     COLLATE "C",
    conversation text     COLLATE "C",
    user_id      text     COLLATE "C",
    request      text     COLLATE "C",
    attributes   bytea,
    message      text     COLLATE "C" NOT NULL
);
CREATE INDEX logs_by_trace ON logs (trace, n) WHERE trace IS NOT NULL;
CREATE INDEX logs_by_execution ON logs (execution, n) WHERE execution IS NOT NULL;
CREATE INDEX logs_by_parent ON logs (parent, n) WHERE parent IS NOT NULL;
CREATE INDEX logs_by_user ON logs (user_id, n) WHERE user_id IS NOT NULL;
"#;

const V2: &str = "
ALTER TABLE meta ADD COLUMN map bigint NOT NULL DEFAULT 0;
ALTER TABLE meta ADD COLUMN secret bytea NOT NULL
    DEFAULT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid());
ALTER TABLE nodes ADD COLUMN lease bigint;
ALTER TABLE nodes ADD COLUMN address text;
CREATE TABLE slots (
    slot smallint PRIMARY KEY,
    node bigint
) WITH (fillfactor = 50);
INSERT INTO slots (slot) SELECT generate_series(0, 4095);
CREATE INDEX running_by_slot ON executions (slot, n) WHERE status = 0;
";

/// `schema_min` is the least version that a program must know; `nodes.schema` is the one that a
/// server knows. `unreachable` has the servers that a server cannot connect to.
const V3: &str = "
ALTER TABLE nodes ADD COLUMN schema int NOT NULL DEFAULT 2;
ALTER TABLE nodes ADD COLUMN unreachable bigint[] NOT NULL DEFAULT '{}';
ALTER TABLE meta ADD COLUMN schema_min int NOT NULL DEFAULT 1;
";

/// `has_asks` is 0 for executions of older versions, and while one of their servers is there,
/// for those of all: it may write to any of them. Those that have not ended are in an index, which
/// others never enter; their asks are filled in.
const V4: &str = r#"
ALTER TABLE executions ADD COLUMN has_asks smallint NOT NULL DEFAULT 0;
CREATE INDEX executions_without_asks ON executions (n) WHERE has_asks = 0 AND ended IS NULL;
CREATE INDEX nodes_by_schema ON nodes (schema) WHERE state < 2;
CREATE TABLE asks (
    n             bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    execution     bigint,
    generation    bigint,
    opened        bigint   NOT NULL,
    due           bigint   NOT NULL,
    closed        bigint,
    next_due      bigint,
    claimed_until bigint,
    revision      bigint   NOT NULL DEFAULT 0,
    kind          smallint NOT NULL,
    state         smallint NOT NULL,
    id            text     COLLATE "C" NOT NULL UNIQUE,
    workflow      text     COLLATE "C",
    agent         text     COLLATE "C",
    path          text     COLLATE "C" NOT NULL,
    tool          text     COLLATE "C",
    user_id       text     COLLATE "C",
    claimed_by    text     COLLATE "C",
    answered_by   text     COLLATE "C",
    reason        text     COLLATE "C" NOT NULL,
    rules         text     COLLATE "C",
    details       text     COLLATE "C",
    answer        text     COLLATE "C"
);
CREATE INDEX asks_open ON asks (due, opened, n) WHERE state = 0;
CREATE INDEX asks_open_by_workflow ON asks (workflow, due, opened, n)
    WHERE state = 0 AND workflow IS NOT NULL;
CREATE INDEX asks_open_by_agent ON asks (agent, due, opened, n)
    WHERE state = 0 AND agent IS NOT NULL;
CREATE INDEX asks_open_by_user ON asks (user_id, due, opened, n)
    WHERE state = 0 AND user_id IS NOT NULL;
CREATE INDEX asks_due ON asks (next_due, n) WHERE state = 0 AND next_due IS NOT NULL;
CREATE INDEX asks_closed ON asks (closed, n) WHERE closed IS NOT NULL;
CREATE INDEX asks_claimed ON asks (claimed_by, n) WHERE claimed_by IS NOT NULL;
CREATE INDEX asks_answered ON asks (answered_by, n) WHERE answered_by IS NOT NULL;
CREATE INDEX asks_of ON asks (execution) WHERE execution IS NOT NULL;
CREATE INDEX asks_of_generation ON asks (generation) WHERE generation IS NOT NULL;

CREATE TABLE continuations (
    generation bigint PRIMARY KEY,
    revision   bigint NOT NULL,
    body       text   COLLATE "C" NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX suspended ON generations (conversation, agent, n) WHERE status = 4;
"#;

/// `asks_assigned` finds the asks that name a user.
const V5: &str = r#"
ALTER TABLE conversations ADD COLUMN approved text COLLATE "C";
CREATE INDEX asks_assigned ON asks (n) WHERE rules IS NOT NULL;
"#;

const V6: &str = "
CREATE INDEX children ON executions (parent, created, n) WHERE parent IS NOT NULL;
CREATE INDEX asks_closed_by_workflow ON asks (workflow, closed, n)
    WHERE closed IS NOT NULL AND workflow IS NOT NULL;
CREATE INDEX asks_closed_by_agent ON asks (agent, closed, n)
    WHERE closed IS NOT NULL AND agent IS NOT NULL;
CREATE INDEX asks_closed_by_user ON asks (user_id, closed, n)
    WHERE closed IS NOT NULL AND user_id IS NOT NULL;
";

/// `mcp_tools` has the tools that MCP servers were seen to have, with the accepted definition of each.
const V7: &str = r#"
CREATE TABLE mcp_tools (
    first_seen bigint NOT NULL,
    accepted   bigint NOT NULL,
    server     text   COLLATE "C" NOT NULL,
    tool       text   COLLATE "C" NOT NULL,
    hash       text   COLLATE "C" NOT NULL,
    body       text   COLLATE "C" NOT NULL,
    PRIMARY KEY (server, tool)
);
"#;
