-- What the measurements of a campaign met that no record tells, for each part of it: from where it was begun or resumed until it ended, was
-- stopped or killed. Without REFERENCES, so that versions that do not know this table can delete a campaign.
CREATE TABLE IF NOT EXISTS part (
    campaign INTEGER NOT NULL,
    number   INTEGER NOT NULL, -- position in the campaign, from 0
    met      TEXT NOT NULL,    -- JSON
    PRIMARY KEY (campaign, number)
) STRICT, WITHOUT ROWID;
