-- Fills the tables with 100,000 rows each, unevenly: one user, trace, memory and time has 20,000.

INSERT INTO lanes (node, lane, session, batch) VALUES (999, 0, 1, 0);

INSERT INTO executions (n, created, updated, ended, last_seq, revision, status, slot, joined, id,
    workflow, definition, user_id, trace, root_workflow, replayed_from, replayed_step, events,
    has_asks)
SELECT n, 10 * n, 10 * n + 5, CASE WHEN status >= 2 THEN 10 * n + 5 END, 12, 1, status,
    n % 3,
    CASE WHEN n % 5 = 0 THEN n % 2 WHEN n % 33 = 0 THEN 1 END, 'execution ' || n,
    'workflow ' || n % 7, 'definition ' || n % 7,
    CASE WHEN n % 5 = 1 THEN 'user 0' WHEN n % 3 = 0 THEN 'user ' || n % 1000 END,
    CASE WHEN n % 5 = 0 THEN 'trace 0' ELSE 'trace ' || n END, 'workflow ' || n % 7,
    CASE WHEN n % 50 = 0 THEN 'execution ' || n % 1000 END, CASE WHEN n % 50 = 0 THEN 'a' END,
    convert_to(repeat(md5(n::text), 4), 'UTF8'), (n % 1000 <> 1)::int
FROM generate_series(1, 100000) n, LATERAL (SELECT CASE WHEN n % 100 = 0 THEN 0
    WHEN n % 10 = 1 THEN 1 WHEN n % 50 = 2 THEN 2 WHEN n % 200 = 3 THEN 3 ELSE 4 END AS status) s;

INSERT INTO chunks (execution, last, revision, events)
SELECT n, 12 + 10 * k, k, convert_to(repeat(md5(n::text), 4), 'UTF8')
FROM generate_series(1, 100000, 10) n, generate_series(1, 3) k;
INSERT INTO chunks (execution, last, revision, events)
SELECT 1, 100 + k, 100 + k, convert_to(md5(k::text), 'UTF8') FROM generate_series(1, 70000) k;

INSERT INTO snapshots (execution, last_seq, last, revision, state)
SELECT n, 12, 13, 1, convert_to(md5(n::text), 'UTF8') FROM generate_series(1, 100000) n;

INSERT INTO timers (execution, key, slot, due)
SELECT 'execution ' || n, 'node:a', n % 3, CASE WHEN n % 5 = 0 THEN 1000 ELSE n END
FROM generate_series(1, 100000) n;

INSERT INTO asks (execution, generation, opened, due, closed, kind, state, id, workflow, agent, path,
    user_id, reason, next_due, claimed_by, answered_by, answer)
SELECT CASE WHEN n % 4 <> 3 THEN n END, CASE WHEN n % 4 = 3 THEN n END, 10 * n,
    CASE WHEN n % 3 = 0 THEN n ELSE 9223372036854775807 END,
    CASE WHEN n % 5 = 0 THEN 1000 WHEN n % 10 <> 1 THEN n END, n % 2,
    CASE WHEN n % 10 <> 1 THEN 1 + n % 3 ELSE 0 END, 'ask ' || n,
    CASE WHEN n % 4 <> 3 THEN 'workflow ' || n % 7 END, CASE WHEN n % 4 = 3 THEN 'agent ' || n % 5 END,
    'a', CASE WHEN n % 50 = 1 THEN 'user 0' WHEN n % 3 = 0 THEN 'user ' || n % 1000 END, 'reason',
    CASE WHEN n % 2 = 1 THEN n END, CASE WHEN n % 5 = 1 THEN 'user 0' END,
    CASE WHEN n % 5 = 2 THEN 'user 0' END, CASE WHEN n % 5 = 2 THEN '{}' END
FROM generate_series(1, 100000) n;

INSERT INTO idempotency (scope, body_hash, execution, after_seq, expires)
SELECT 'scope ' || n, md5(n::text), 'execution ' || n, 1, n FROM generate_series(1, 100000) n;

INSERT INTO definitions (hash, body)
SELECT 'definition ' || n, convert_to('{}', 'UTF8') FROM generate_series(1, 10000) n;

INSERT INTO execution_counts (workflow, status, node, lane, count)
SELECT 'workflow ' || n % 100, n % 5, n / 500, n % 2, 1 FROM generate_series(0, 999) n
ON CONFLICT DO NOTHING;

INSERT INTO acted (user_id, execution)
SELECT CASE WHEN n % 5 = 0 THEN 'user 0' ELSE 'user ' || n % 1000 END, n
FROM generate_series(1, 100000) n;

INSERT INTO agents (agent, last) SELECT 'agent ' || n, 20001 FROM generate_series(0, 4) n;
INSERT INTO generations (n, number, started, ended, node, status, joined, id, agent, user_id,
    conversation, trace, input, output)
SELECT n, n / 5 + 1, 10 * n, CASE WHEN n % 400 <> 0 THEN 10 * n + 5 END, 1,
    CASE WHEN n % 400 = 0 THEN 0 WHEN n % 10 = 6 THEN 4 ELSE 1 END, CASE WHEN n % 5 = 0 THEN n % 2 WHEN n % 33 = 0 THEN 1 END,
    'generation ' || n, 'agent ' || n % 5,
    CASE WHEN n % 5 = 1 THEN 'user 0' WHEN n % 2 = 0 THEN 'user ' || n % 1000 END,
    CASE WHEN n % 2 = 0 THEN 'conversation ' || n % 1000 END,
    CASE WHEN n % 5 = 0 THEN 'trace 0' WHEN n % 33 = 0 THEN 'trace ' || n END,
    convert_to('{}', 'UTF8'), convert_to('{}', 'UTF8')
FROM generate_series(1, 100000) n;
INSERT INTO steps (generation, number, body)
SELECT n, k, convert_to('{}', 'UTF8')
FROM generate_series(1, 100000, 5) n, generate_series(0, 4) k;
INSERT INTO continuations (generation, revision, body)
SELECT n, 1, '{}' FROM generate_series(1, 100000) n WHERE n % 400 = 0 OR n % 10 = 6;
INSERT INTO forgotten (agent, block, count, last)
SELECT 'agent ' || n % 5, n / 5, 1, 1 FROM generate_series(0, 99) n;

INSERT INTO memories (agent, owner)
SELECT 'agent ' || n % 5, '=user ' || n / 5 FROM generate_series(0, 4999) n;
INSERT INTO conversations (memory, created, updated, next, id, agent, owner, metadata)
SELECT m.n, c, 10 * c + m.n, 2, 'conversation ' || c, m.agent, m.owner, convert_to('{}', 'UTF8')
FROM memories m, generate_series(0, 3) c;
INSERT INTO messages (conversation, place, memory, created, role, id, parts, folded)
SELECT c.n, p, c.memory, p, 1, 'message ' || p, convert_to('[]', 'UTF8'),
    'message ' || md5((c.n * p)::text) || ' in a conversation'
FROM conversations c,
    generate_series(1, CASE WHEN c.memory = 1 THEN 5000 ELSE 4 END) p;

INSERT INTO logs (n, at, level, target, trace, execution, parent, user_id, message)
SELECT n, n, n % 5, 'target', CASE WHEN n % 5 = 0 THEN 'trace 0' ELSE 'trace ' || n END,
    CASE WHEN n % 5 = 0 THEN 'execution 0' ELSE 'execution ' || n END,
    CASE WHEN n % 5 = 1 THEN 'execution 0' END,
    CASE WHEN n % 5 = 0 THEN 'user 0' ELSE 'user ' || n % 1000 END, 'message ' || n
FROM generate_series(1, 100000) n;

INSERT INTO mcp_tools (server, tool, first_seen, accepted, hash, body)
SELECT 'server ' || n / 1000, 'tool ' || n % 1000, n, n, 'hash', '{}' FROM generate_series(1, 20000) n;
