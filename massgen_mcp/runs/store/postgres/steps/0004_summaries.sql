-- The outcome of a run as a sentence; empty before its end.
ALTER TABLE runs ADD COLUMN summary TEXT NOT NULL DEFAULT '';
