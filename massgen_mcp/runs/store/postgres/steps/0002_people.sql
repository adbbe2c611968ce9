-- Whose a run is, what it may cost or has cost, whose turn it is, and who did what. As in the embedded store.
ALTER TABLE runs ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN usd DOUBLE PRECISION;
ALTER TABLE runs ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET turn = number;
CREATE INDEX runs_by_owner ON runs (owner, turn);
CREATE INDEX runs_by_turn ON runs (turn);

CREATE TABLE audit (
    number BIGSERIAL PRIMARY KEY,
    at DOUBLE PRECISION NOT NULL,
    person TEXT NOT NULL,
    action TEXT NOT NULL,
    run_id TEXT NOT NULL
);
CREATE FUNCTION keep_audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'audit is kept'; END $$;
CREATE TRIGGER audit_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON audit EXECUTE FUNCTION keep_audit();
