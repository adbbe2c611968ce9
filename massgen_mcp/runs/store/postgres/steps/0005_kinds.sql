-- How a run was started: by itself, or as one of many by a batch or an evaluation.
ALTER TABLE runs ADD COLUMN kind TEXT NOT NULL DEFAULT 'single';
