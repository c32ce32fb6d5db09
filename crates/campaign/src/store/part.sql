-- What disturbed the measurements of a campaign, for each session. A session begins where the
-- campaign is begun or resumed, and ends where it ends, is stopped or is killed. No REFERENCES:
-- versions that do not know this table can delete a campaign.
CREATE TABLE IF NOT EXISTS part (
    campaign INTEGER NOT NULL,
    number   INTEGER NOT NULL, -- position in the campaign, from 0
    met      TEXT NOT NULL,    -- JSON: what disturbed the session (Disturbances)
    PRIMARY KEY (campaign, number)
) STRICT, WITHOUT ROWID;
