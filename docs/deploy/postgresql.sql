-- Vacuum of the large tables of greenroom, which change most: after 2 % instead of 20 %. Once, after
-- the first start of a server, as the owner of the tables:
--
--   psql --file=docs/deploy/postgresql.sql postgres://greenroom@db1/greenroom
--
-- `timers` has such a setting from the start.

ALTER TABLE executions SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE generations SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE conversations SET (autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE idempotency SET (autovacuum_vacuum_scale_factor = 0.02);
