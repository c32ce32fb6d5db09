-- From formats 1 and 2, whose campaigns do not say their kind, to format 3.
ALTER TABLE campaign ADD COLUMN kind TEXT NOT NULL DEFAULT 'place';
ALTER TABLE campaign ADD COLUMN parent INTEGER;
ALTER TABLE campaign ADD COLUMN step TEXT;
ALTER TABLE record ADD COLUMN detail TEXT;
UPDATE campaign SET kind = CASE
    WHEN json_type(question, '$.lineup') IS NOT NULL THEN 'compare'
    WHEN json_type(question, '$.alone') IS NOT NULL THEN 'select'
    ELSE 'place' END;
