-- Digests by which a reader notices that a row has changed on disk. SQLite has none of its own.
CREATE TABLE digest (
    campaign INTEGER NOT NULL,
    record   INTEGER NOT NULL, -- number of a record; -1: the row of the campaign itself
    digest   INTEGER NOT NULL, -- FNV-1a of its columns
    PRIMARY KEY (campaign, record)
) STRICT, WITHOUT ROWID;
