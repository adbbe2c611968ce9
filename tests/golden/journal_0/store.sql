PRAGMA user_version=3;
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
INSERT INTO "retention_clock" VALUES(1,8.10383176799996363115e+00,1.7953138470820465088e+09,'6d9b9d9b-ad33-46b0-b5ea-0aab954ffdeb',1623.31234029);
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
        , session_id TEXT, outcome TEXT, winner TEXT, events INTEGER, started REAL, resumes INTEGER NOT NULL DEFAULT 0, kept TEXT NOT NULL DEFAULT 'all', aged_from REAL, machine TEXT, lease REAL);
INSERT INTO "runs" VALUES(1,'run-czpjougb7v7nubn6y36qlg2o34','completed','What is six times seven?','./team.yaml','5359643ebe43a3ce9400f30a3410c420','27dd03ef68c1-22772-c2273955',NULL,'9a7d60a59d9e905d4b7ba503491a13c91f06c7c53543f59b2252c5f57a1e9d9e',1.79531383691421175005e+09,1.79531384100663089753e+09,NULL,'consensus','agent_a',96,1.79531383897122383112e+09,0,'all',6.44447754899988467514e+00,'27dd03ef68c1',1.79531389897122287753e+09);
INSERT INTO "runs" VALUES(2,'run-6wapq6pp4uiqkfkfsmhohnaqde','completed','What is six times seven?','./asking.yaml','5359643ebe43a3ce9400f30a3410c420','27dd03ef68c1-22772-c2273955',NULL,'81725da3e8c4fc6e8165277ef239cb0f7ec9c90f39d12700dbf3edeeeadc4a92',1.79531384112196087834e+09,1.79531384125183248517e+09,NULL,'consensus','agent_a',14,1.79531384113172030447e+09,0,'all',6.44447754899988467514e+00,'27dd03ef68c1',1.79531390113171911235e+09);
INSERT INTO "runs" VALUES(3,'run-zwine4kqljok5wvdp4wdq7k2ou','completed','What is six times seven?','./raised.yaml','5359643ebe43a3ce9400f30a3410c420','27dd03ef68c1-22772-c2273955',NULL,'e83b16907cf75a6c3a61be04fc8b31b32f5099a3221dce10aec0b48ea4d72e9b',1.79531384127757835385e+09,1.79531384148885273929e+09,NULL,'tie_broken','agent_a',28,1.79531384130318975443e+09,0,'all',6.44447754899988467514e+00,'27dd03ef68c1',1.79531390130318903924e+09);
INSERT INTO "runs" VALUES(4,'run-r4jqwjgiakjp33bx4yttodq75q','completed','What is six times seven?','./marked.yaml','5359643ebe43a3ce9400f30a3410c420','27dd03ef68c1-22772-c2273955',NULL,'c8c126f789483491f0d7fedda6f4691a3b960848ec95e0ff5a8558edbfc619aa',1.79531384150247740744e+09,1.79531384164631175994e+09,NULL,'tie_broken','agent_a',25,1.79531384150405788416e+09,0,'all',6.44447754899988467514e+00,'27dd03ef68c1',1.79531390150405693048e+09);
INSERT INTO "runs" VALUES(5,'run-tng6c7kbw3nj5qm3db53bxx33q','failed','What is six times seven?','./failed.yaml','5359643ebe43a3ce9400f30a3410c420','27dd03ef68c1-22772-c2273955',NULL,'4e17657976f4fb20b980b44686ce21169e0f2a370994dba8b52f6e2d355f4f0a',1.7953138416698276997e+09,1.79531384171022820469e+09,NULL,NULL,NULL,11,1.79531384167487287522e+09,0,'all',6.44447754899988467514e+00,'27dd03ef68c1',1.79531390167487144471e+09);
INSERT INTO "runs" VALUES(6,'run-scr5rzhzdeargvohnyp3zbinx4','cancelled','What is six times seven?','./cancelled.yaml','5359643ebe43a3ce9400f30a3410c420','27dd03ef68c1-22772-c2273955',NULL,'2761e05bb396d448ef0ca6aecbe3ba5746f20f3a926e48ed29b4f49295af3087',1.79531384172194862372e+09,1.79531384179398322106e+09,NULL,'best_so_far',NULL,10,1.79531384172432136535e+09,0,'all',6.44447754899988467514e+00,'27dd03ef68c1',1.79531390172432017324e+09);
INSERT INTO "runs" VALUES(7,'run-gemlw56ws3z5g57qjbhzmw462u','timed_out','What is six times seven?','./timed-out.yaml','5359643ebe43a3ce9400f30a3410c420','27dd03ef68c1-22772-c2273955',NULL,'0e370045b4c5bafec0736e2dfd627927ba71a80b504ba7f4ef02e837114056cd',1.79531384180383229258e+09,1.79531384384738087653e+09,NULL,'best_so_far',NULL,10,1.79531384180618715281e+09,0,'all',6.44447754899988467514e+00,'27dd03ef68c1',1.79531390180618619914e+09);
INSERT INTO "runs" VALUES(8,'run-cks7s2a3jufegtpposy5itmsci','completed','What is six times seven?','./resumed.yaml','5359643ebe43a3ce9400f30a3410c420','27dd03ef68c1-22831-0ac19c9b',NULL,'f0a439cf077bce99258d839fc5bd7cfd32ac56068ee672a6a95aa5230e6f3f4d',1.79531384387568044656e+09,1.79531384875296449663e+09,NULL,'tie_broken','agent_a',30,1.79531384703815937039e+09,1,'all',NULL,'27dd03ef68c1',1.79531390703815865511e+09);
INSERT INTO "runs" VALUES(9,'run-2dsrwfkobzfaencdpsxnvrbmg4','running','What is six times seven?','./interrupted.yaml','5359643ebe43a3ce9400f30a3410c420','27dd03ef68c1-22831-0ac19c9b',NULL,'88b98f1022fa924e42acd8c0059e11bc9bc2904204508040b4080687cf261477',1.79531384881723141662e+09,NULL,NULL,NULL,NULL,NULL,1.7953138488314108849e+09,0,'all',NULL,'27dd03ef68c1',1.79531390883141016962e+09);
CREATE INDEX runs_by_state ON runs (state, fingerprint);
CREATE INDEX runs_by_session ON runs (session_id, number) WHERE session_id IS NOT NULL;
CREATE INDEX runs_by_start ON runs (fingerprint, started);
CREATE INDEX runs_kept ON runs (kept, state) WHERE kept <> 'nothing';
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('runs',9);
INSERT INTO "sqlite_sequence" VALUES('controls',4);
COMMIT;
