-- What was found out about machines themselves (characterizations), for whoever wants to predict on
-- them later.
CREATE TABLE IF NOT EXISTS machine (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    at          INTEGER NOT NULL DEFAULT (unixepoch()), -- seconds since the Unix epoch
    kind        TEXT NOT NULL,                          -- characterization; excerpt: one that
                                                        -- nothing is decided by
    topology    TEXT NOT NULL,                          -- digest of domains, caches, kinds of
                                                        -- cores, NUMA
    model       TEXT NOT NULL,                          -- the processor's name
    fingerprint TEXT NOT NULL,                          -- JSON: these two and the conditions
                                                        -- (kernel, SMT, governor)
    document    TEXT NOT NULL                           -- JSON: what `pinwise characterize --json`
                                                        -- printed
) STRICT;
