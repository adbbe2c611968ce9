-- The columns of runs, controls, digests and marks are those of the embedded store.
CREATE TABLE runs (
    number BIGSERIAL PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    question TEXT NOT NULL,
    config TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    runner TEXT,
    idempotency_key TEXT UNIQUE,
    request_hash TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    started DOUBLE PRECISION,
    ended DOUBLE PRECISION,
    session_id TEXT,
    outcome TEXT,
    winner TEXT,
    events BIGINT,
    resumes INTEGER NOT NULL DEFAULT 0,
    kept TEXT NOT NULL DEFAULT 'all',
    aged_from DOUBLE PRECISION,
    journal_version INTEGER NOT NULL DEFAULT 0,
    directory TEXT,
    foreground SMALLINT NOT NULL DEFAULT 0,
    held_back_by TEXT,
    parent TEXT,
    admitted SMALLINT NOT NULL DEFAULT 1,
    weak TEXT NOT NULL DEFAULT '',
    epoch INTEGER NOT NULL DEFAULT 0  -- how often a worker has taken the run; only the last one may write
);
CREATE INDEX runs_going_on ON runs (state, fingerprint) WHERE state IN ('queued', 'running', 'interrupted');
CREATE INDEX runs_by_session ON runs (session_id, number) WHERE session_id IS NOT NULL;
CREATE INDEX runs_kept ON runs (kept, state) WHERE kept <> 'nothing';
CREATE INDEX runs_by_parent ON runs (parent) WHERE parent IS NOT NULL;

CREATE TABLE controls (
    number BIGSERIAL PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    action TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    message TEXT NOT NULL DEFAULT ''
);
CREATE INDEX controls_by_run ON controls (run_id);

-- A line of events.jsonl each, with its seal.
CREATE TABLE events (
    run TEXT NOT NULL,
    seq INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, seq)
);

CREATE TABLE retention_clock (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    age DOUBLE PRECISION NOT NULL,
    wall DOUBLE PRECISION NOT NULL,
    boot TEXT NOT NULL,
    uptime DOUBLE PRECISION NOT NULL
);

CREATE TABLE digests (
    number BIGINT PRIMARY KEY REFERENCES runs (number),
    version INTEGER NOT NULL,
    digest TEXT NOT NULL
);

CREATE TABLE marks (
    number BIGINT NOT NULL REFERENCES runs (number),
    agent TEXT NOT NULL,
    verdict TEXT NOT NULL,
    note TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (number, agent)
);

-- Which pools workers serve, and when each was last seen. Whose runs are lost is for procrastinate's heartbeat to say.
CREATE TABLE workers (
    name TEXT NOT NULL,
    pool TEXT NOT NULL,
    seen TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (name, pool)
);
