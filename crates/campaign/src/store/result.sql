-- Results that came from one of several nodes, each in the order of its arrival. One whose record
-- does not exist (yet) waits for its turn. No REFERENCES: versions that do not know this table can
-- delete a campaign.
CREATE TABLE IF NOT EXISTS result (
    campaign   INTEGER NOT NULL,
    number     INTEGER NOT NULL, -- position in the campaign, from 0
    node       TEXT NOT NULL,    -- the node that measured it
    assignment TEXT NOT NULL,    -- as in record
    windows    REAL NOT NULL,    -- as in record
    outcome    TEXT NOT NULL,    -- JSON: {"Ok": measurement} or {"Err": why there is none}
    scale      TEXT,             -- JSON: {"factor", "error"}, by which its record has more
    record     INTEGER,          -- the number of the record that it has become
    at         REAL NOT NULL DEFAULT (unixepoch('subsec')),
    PRIMARY KEY (campaign, number)
) STRICT, WITHOUT ROWID;
