-- Digests by which a reader notices that a row has changed on disk. SQLite has none of its own.
CREATE TABLE digest (
    campaign INTEGER NOT NULL, -- 0: rows of machine, by their id; -n: campaign n, all rows of
                               -- which have a digest
    record   INTEGER NOT NULL, -- number of a record; -1: the row of the campaign itself;
                               -- -2 and below: its sessions 0, 1, ... in part
    digest   INTEGER NOT NULL, -- FNV-1a of its columns; of -n: the number of records
    PRIMARY KEY (campaign, record)
) STRICT, WITHOUT ROWID;
