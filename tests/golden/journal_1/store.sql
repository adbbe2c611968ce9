PRAGMA user_version=4;
BEGIN TRANSACTION;
CREATE TABLE controls (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            run_id TEXT NOT NULL REFERENCES runs (run_id),
            action TEXT NOT NULL,
            created REAL NOT NULL
        , message TEXT NOT NULL DEFAULT '');
CREATE TABLE retention_clock (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            age REAL NOT NULL,
            wall REAL NOT NULL,
            boot TEXT NOT NULL,
            uptime REAL NOT NULL
        );
INSERT INTO "retention_clock" VALUES(1,7.60392844300008619029e+00,1.79531410951420092583e+09,'6d9b9d9b-ad33-46b0-b5ea-0aab954ffdeb',1885.744494901);
CREATE TABLE runs (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            run_id TEXT NOT NULL UNIQUE,
            state TEXT NOT NULL,
            question TEXT NOT NULL,
            config TEXT NOT NULL,
            fingerprint TEXT NOT NULL,
            runner TEXT,
            idempotency_key TEXT UNIQUE,
            request_hash TEXT NOT NULL,
            created REAL NOT NULL,
            ended REAL
        , session_id TEXT, outcome TEXT, winner TEXT, events INTEGER, started REAL, resumes INTEGER NOT NULL DEFAULT 0, kept TEXT NOT NULL DEFAULT 'all', aged_from REAL, journal_version INTEGER NOT NULL DEFAULT 0);
INSERT INTO "runs" VALUES(1,'run-vd5u57aabrlk6b7ay27iprpy2i','completed','What is six times seven?','./team.yaml','d6e3a50e16d30c042c15c0d30ae89cf7','27789-f5f8da1a',NULL,'9a7d60a59d9e905d4b7ba503491a13c91f06c7c53543f59b2252c5f57a1e9d9e',1.79531410070758652686e+09,1.79531410374096035958e+09,NULL,'plurality','agent_a',96,1.7953141019048080444e+09,0,'all',5.35626076400012607336e+00,0);
INSERT INTO "runs" VALUES(2,'run-unxv53c6lyjj3dinkurfaee4ya','completed','What is six times seven?','./asking.yaml','d6e3a50e16d30c042c15c0d30ae89cf7','27789-f5f8da1a',NULL,'81725da3e8c4fc6e8165277ef239cb0f7ec9c90f39d12700dbf3edeeeadc4a92',1.79531410381768250462e+09,1.79531410391725134842e+09,NULL,'consensus','agent_a',14,1.79531410382995414726e+09,0,'all',5.35626076400012607336e+00,0);
INSERT INTO "runs" VALUES(3,'run-v6jgket6qgbizzyu27i4kmdjai','completed','What is six times seven?','./raised.yaml','d6e3a50e16d30c042c15c0d30ae89cf7','27789-f5f8da1a',NULL,'e83b16907cf75a6c3a61be04fc8b31b32f5099a3221dce10aec0b48ea4d72e9b',1.7953141039244515896e+09,1.7953141040461053848e+09,NULL,'tie_broken','agent_a',28,1.79531410393671107296e+09,0,'all',5.35626076400012607336e+00,0);
INSERT INTO "runs" VALUES(4,'run-2ndtltb7rcfpog2zmdtvty47q4','completed','What is six times seven?','./marked.yaml','d6e3a50e16d30c042c15c0d30ae89cf7','27789-f5f8da1a',NULL,'c8c126f789483491f0d7fedda6f4691a3b960848ec95e0ff5a8558edbfc619aa',1.79531410405799961085e+09,1.79531410413998627657e+09,NULL,'tie_broken','agent_a',25,1.79531410405948662753e+09,0,'all',5.35626076400012607336e+00,0);
INSERT INTO "runs" VALUES(5,'run-gy75w5x6kzcmm7g3stlk7at6qu','failed','What is six times seven?','./failed.yaml','d6e3a50e16d30c042c15c0d30ae89cf7','27789-f5f8da1a',NULL,'4e17657976f4fb20b980b44686ce21169e0f2a370994dba8b52f6e2d355f4f0a',1.79531410414988088601e+09,1.79531410418194770813e+09,NULL,NULL,NULL,11,1.79531410415962195403e+09,0,'all',5.35626076400012607336e+00,0);
INSERT INTO "runs" VALUES(6,'run-xxyv6ydqocglou6huppjleyj5q','cancelled','What is six times seven?','./cancelled.yaml','d6e3a50e16d30c042c15c0d30ae89cf7','27789-f5f8da1a',NULL,'2761e05bb396d448ef0ca6aecbe3ba5746f20f3a926e48ed29b4f49295af3087',1.79531410419263362889e+09,1.79531410430376243587e+09,NULL,'best_so_far',NULL,10,1.79531410420357894893e+09,0,'all',5.35626076400012607336e+00,0);
INSERT INTO "runs" VALUES(7,'run-cwq225pcvyqpq5wldsylfwwmiy','timed_out','What is six times seven?','./timed-out.yaml','d6e3a50e16d30c042c15c0d30ae89cf7','27789-f5f8da1a',NULL,'0e370045b4c5bafec0736e2dfd627927ba71a80b504ba7f4ef02e837114056cd',1.79531410429392647744e+09,1.79531410632425713538e+09,NULL,'best_so_far',NULL,10,1.79531410430642914769e+09,0,'all',5.35626076400012607336e+00,0);
INSERT INTO "runs" VALUES(8,'run-scn5rzp4qln2g6ixjkiy7n2fpi','completed','What is six times seven?','./resumed.yaml','d6e3a50e16d30c042c15c0d30ae89cf7','28083-2f694e06',NULL,'f0a439cf077bce99258d839fc5bd7cfd32ac56068ee672a6a95aa5230e6f3f4d',1.79531410640588760373e+09,1.79531411115831661222e+09,NULL,'tie_broken','agent_a',30,1.79531410950054621696e+09,1,'all',NULL,0);
INSERT INTO "runs" VALUES(9,'run-3nkzylfexqg6eekvgm42tjbchu','running','What is six times seven?','./interrupted.yaml','d6e3a50e16d30c042c15c0d30ae89cf7','28083-2f694e06',NULL,'88b98f1022fa924e42acd8c0059e11bc9bc2904204508040b4080687cf261477',1.79531411124072480195e+09,NULL,NULL,NULL,NULL,NULL,1.79531411124477243423e+09,0,'all',NULL,0);
CREATE INDEX runs_by_state ON runs (state, fingerprint);
CREATE INDEX runs_by_session ON runs (session_id, number) WHERE session_id IS NOT NULL;
CREATE INDEX runs_by_start ON runs (fingerprint, started);
CREATE INDEX runs_kept ON runs (kept, state) WHERE kept <> 'nothing';
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('runs',9);
INSERT INTO "sqlite_sequence" VALUES('controls',4);
COMMIT;
