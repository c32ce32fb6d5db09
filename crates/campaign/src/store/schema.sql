-- The store of pinwise. Every measurement is one row of `record`; ask it with the sqlite3 shell:
--   SELECT assignment, count(*), avg(performance) FROM record
--   WHERE campaign = 1 GROUP BY assignment ORDER BY 3 DESC;
-- Three tables are made when they are needed: `machine` (machine.sql), `part` (part.sql) and
-- `result` (result.sql).
CREATE TABLE campaign (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    started    INTEGER NOT NULL DEFAULT (unixepoch()), -- seconds since the Unix epoch
    kind       TEXT NOT NULL,                          -- the question: place, threads, ...
                                                       -- (Kind::name)
    parent     INTEGER,                                -- the campaign that this one is a part of
    step       TEXT,                                   -- JSON: which of its steps,
                                                       -- {"place":{"n":4,"round":1}}
    command    TEXT NOT NULL,                          -- JSON array: the command line that asked
    machine    TEXT NOT NULL,                          -- JSON
    alike      TEXT NOT NULL,                          -- which domains count as interchangeable
    workload   TEXT NOT NULL,                          -- JSON: the threads, in the order
                                                       -- assignments number them
    unit       TEXT NOT NULL,                          -- JSON: what performance is counted in
    simulated  INTEGER NOT NULL,                       -- 1: what is measured is a model's, else 0
    question   TEXT NOT NULL,                          -- JSON
    seed       TEXT NOT NULL,                          -- decimal, 64 bits
    state      TEXT NOT NULL DEFAULT 'open',           -- open, finished, stopped
    conclusion TEXT                                    -- JSON, once there is one
) STRICT;

CREATE TABLE record (
    campaign    INTEGER NOT NULL REFERENCES campaign (id),
    number      INTEGER NOT NULL,                      -- position in the campaign, from 0
    purpose     TEXT NOT NULL,                         -- baseline, sample, steered, climb,
                                                       -- reference, profile, final, other
    assignment  TEXT NOT NULL,                         -- leaf of every thread, as 0,3,1; or
                                                       -- unpinned; a profile has
                                                       -- INSTANCE:LEAVES of each part, as
                                                       -- 0:0,8,16 0:24,9,40;
                                                       -- threads: n=4, n=4 0,1,2,3 or n=default;
                                                       -- contexts 0>1; benchmarks LEAF=BENCHMARK:
                                                       -- seats 0=3 8=1 seed 7
    windows     REAL NOT NULL,                         -- length, in the testbed's ordinary windows
    performance REAL,                                  -- in the campaign's unit, higher is better;
                                                       -- NULL when it failed
    duration_s  REAL,                                  -- time measured over, without settling
    spread      REAL,                                  -- standard deviation within the window,
                                                       -- where known
    error       TEXT,                                  -- what failed
    retry       TEXT,                                  -- whether another try makes sense: same,
                                                       -- other, below_floor, expired
    detail      TEXT,                                  -- JSON: what else was observed
    elapsed_s   REAL NOT NULL,                         -- time spent measuring since the campaign
                                                       -- began
    at          REAL NOT NULL DEFAULT (unixepoch('subsec')),
    PRIMARY KEY (campaign, number)
) STRICT, WITHOUT ROWID;

-- Distinguishes this store from others: one row. Stores of earlier versions have no such table.
CREATE TABLE token (
    value TEXT NOT NULL                                -- random
) STRICT;
