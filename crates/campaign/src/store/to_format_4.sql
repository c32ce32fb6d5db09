-- From format 3, whose campaigns do not say that they are simulated, to format 4. Which are comes
-- next.
ALTER TABLE campaign ADD COLUMN simulated INTEGER NOT NULL DEFAULT 0;
