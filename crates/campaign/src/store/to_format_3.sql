-- From formats 1 and 2, whose campaigns do not say their kind, to format 3. The kinds come next.
ALTER TABLE campaign ADD COLUMN kind TEXT NOT NULL DEFAULT 'place';
ALTER TABLE campaign ADD COLUMN parent INTEGER;
ALTER TABLE campaign ADD COLUMN step TEXT;
ALTER TABLE record ADD COLUMN detail TEXT;
