PRAGMA user_version=8;
BEGIN TRANSACTION;
CREATE TABLE controls (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            run_id TEXT NOT NULL REFERENCES runs (run_id),
            action TEXT NOT NULL,
            created REAL NOT NULL
        , message TEXT NOT NULL DEFAULT '');
CREATE TABLE digests (
            number INTEGER PRIMARY KEY REFERENCES runs (number),
            version INTEGER NOT NULL,
            digest TEXT NOT NULL
        );
INSERT INTO "digests" VALUES(1,1,'{"seconds":1.581,"attempts":2,"outcome":"plurality","agents":[{"id":"one","model":"scripted","answers":1,"dropped":null,"voted":"agent1.1","wrote":"agent1.1","spent":{"calls":10,"tokens":3100,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}},{"id":"two","model":"scripted","answers":1,"dropped":null,"voted":"agent3.1","wrote":"agent2.1","spent":{"calls":5,"tokens":1731,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}},{"id":"three","model":"scripted","answers":1,"dropped":null,"voted":"agent3.1","wrote":"agent3.1","spent":{"calls":6,"tokens":2225,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}},{"id":"four","model":"scripted","answers":0,"dropped":"auth","voted":null,"wrote":null,"spent":{"calls":0,"tokens":0,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}],"winner":"three","camp":"agent3.1","first_answer":false,"first_ballot":false,"spent":{"calls":21,"tokens":7056,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}');
INSERT INTO "digests" VALUES(2,1,'{"seconds":0.058,"attempts":1,"outcome":"single","agents":[{"id":"one","model":"scripted","answers":1,"dropped":null,"voted":null,"wrote":"agent1.1","spent":{"calls":2,"tokens":330,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}],"winner":"one","camp":"agent1.1","first_answer":true,"first_ballot":true,"spent":{"calls":2,"tokens":330,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}');
INSERT INTO "digests" VALUES(3,1,'{"seconds":0.053,"attempts":1,"outcome":"consensus","agents":[{"id":"one","model":"scripted","answers":1,"dropped":null,"voted":"agent1.1","wrote":"agent1.1","spent":{"calls":3,"tokens":941,"usd":0.941,"unpriced_calls":0,"estimated_calls":0}},{"id":"two","model":"scripted","answers":1,"dropped":null,"voted":"agent1.1","wrote":"agent2.1","spent":{"calls":2,"tokens":578,"usd":0.578,"unpriced_calls":0,"estimated_calls":0}}],"winner":"one","camp":"agent1.1","first_answer":true,"first_ballot":true,"spent":{"calls":5,"tokens":1519,"usd":1.519,"unpriced_calls":0,"estimated_calls":0}}');
INSERT INTO "digests" VALUES(4,1,'{"seconds":0.027,"attempts":1,"outcome":"consensus","agents":[{"id":"one","model":"scripted","answers":1,"dropped":null,"voted":"agent2.1","wrote":"agent1.1","spent":{"calls":2,"tokens":568,"usd":0.535033,"unpriced_calls":0,"estimated_calls":0}},{"id":"two","model":"scripted","answers":1,"dropped":null,"voted":"agent2.1","wrote":"agent2.1","spent":{"calls":3,"tokens":951,"usd":0.906045,"unpriced_calls":0,"estimated_calls":0}}],"winner":"two","camp":"agent2.1","first_answer":true,"first_ballot":true,"spent":{"calls":5,"tokens":1519,"usd":1.441078,"unpriced_calls":0,"estimated_calls":0}}');
INSERT INTO "digests" VALUES(5,1,'{"seconds":0.003,"attempts":1,"outcome":null,"agents":[{"id":"one","model":"scripted","answers":0,"dropped":"auth","voted":null,"wrote":null,"spent":{"calls":0,"tokens":0,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}},{"id":"two","model":"scripted","answers":0,"dropped":"model_not_found","voted":null,"wrote":null,"spent":{"calls":0,"tokens":0,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}],"winner":null,"camp":null,"first_answer":false,"first_ballot":false,"spent":{"calls":0,"tokens":0,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}');
INSERT INTO "digests" VALUES(6,1,'{"seconds":0.129,"attempts":1,"outcome":"best_so_far","agents":[{"id":"one","model":"scripted","answers":1,"dropped":null,"voted":null,"wrote":"agent1.1","spent":{"calls":1,"tokens":194,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}},{"id":"two","model":"scripted","answers":0,"dropped":null,"voted":null,"wrote":null,"spent":{"calls":1,"tokens":1774,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}],"winner":null,"camp":null,"first_answer":false,"first_ballot":false,"spent":{"calls":2,"tokens":1968,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}');
INSERT INTO "digests" VALUES(7,1,'{"seconds":2.003,"attempts":1,"outcome":"best_so_far","agents":[{"id":"one","model":"scripted","answers":1,"dropped":null,"voted":null,"wrote":"agent1.1","spent":{"calls":1,"tokens":194,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}},{"id":"two","model":"scripted","answers":0,"dropped":null,"voted":null,"wrote":null,"spent":{"calls":1,"tokens":1774,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}],"winner":null,"camp":null,"first_answer":false,"first_ballot":false,"spent":{"calls":2,"tokens":1968,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}');
INSERT INTO "digests" VALUES(8,1,'{"seconds":2.693,"attempts":1,"outcome":"consensus","agents":[{"id":"one","model":"scripted","answers":1,"dropped":null,"voted":"agent1.1","wrote":"agent1.1","spent":{"calls":5,"tokens":2928,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}},{"id":"two","model":"scripted","answers":1,"dropped":null,"voted":"agent1.1","wrote":"agent2.1","spent":{"calls":2,"tokens":567,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}],"winner":"one","camp":"agent1.1","first_answer":true,"first_ballot":true,"spent":{"calls":7,"tokens":3495,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}');
CREATE TABLE marks (
            number INTEGER NOT NULL REFERENCES runs (number),
            agent TEXT NOT NULL,
            verdict TEXT NOT NULL,
            note TEXT NOT NULL,
            at REAL NOT NULL,
            PRIMARY KEY (number, agent)
        );
CREATE TABLE retention_clock (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            age REAL NOT NULL,
            wall REAL NOT NULL,
            boot TEXT NOT NULL,
            uptime REAL NOT NULL
        );
INSERT INTO "retention_clock" VALUES(1,5.38732112800062168389e+00,1.7959160067959873676e+09,'ea90e36c-20be-4ce9-95af-d336e8c0ca60',37759.07400093);
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
        , session_id TEXT, outcome TEXT, winner TEXT, events INTEGER, started REAL, resumes INTEGER NOT NULL DEFAULT 0, kept TEXT NOT NULL DEFAULT 'all', aged_from REAL, journal_version INTEGER NOT NULL DEFAULT 0, directory TEXT, foreground INTEGER NOT NULL DEFAULT 0, held_back_by TEXT, parent TEXT, admitted INTEGER NOT NULL DEFAULT 1);
INSERT INTO "runs" VALUES(1,'run-xl7vk24lnrzmv2tpe5475awubi','completed','What is six times seven?','./team.yaml','4f1946c8cd61ac2477b23a4103a20e2f','7847-9598726e',NULL,'4241c84df250059da3ccbeac488511870a88e3a429d7bb7e6d82e4f05311cd42',1.79591600019340348246e+09,1.79591600305751466753e+09,NULL,'plurality','three',96,1.79591600140404725072e+09,0,'all',5.38732112800062168389e+00,0,NULL,0,NULL,NULL,1);
INSERT INTO "runs" VALUES(2,'run-mtu2ownaccw5wyvg5c6dae7sve','completed','What is six times seven?','./asking.yaml','4f1946c8cd61ac2477b23a4103a20e2f','7847-9598726e',NULL,'a977775c694426cde9423038aa5a5eb44c2e88b292782a78738075a6a1ce2479',1.79591600314869070053e+09,1.79591600323408746723e+09,NULL,'single','one',14,1.79591600315855908398e+09,0,'all',5.38732112800062168389e+00,0,NULL,0,NULL,NULL,1);
INSERT INTO "runs" VALUES(3,'run-szxr6lbhg6mlki2vyziht3kx7a','completed','What is six times seven?','./raised.yaml','4f1946c8cd61ac2477b23a4103a20e2f','7847-9598726e',NULL,'118250a80a1fc86cdcca720b2ef0a13d8f873f8f6505375e285ffb7dda496cba',1.7959160032473638058e+09,1.79591600331348586081e+09,NULL,'consensus','one',28,1.79591600325218153002e+09,0,'all',5.38732112800062168389e+00,0,NULL,0,NULL,NULL,1);
INSERT INTO "runs" VALUES(4,'run-nzjaorzb7mlhmm47ctltg3r4ti','completed','What is six times seven?','./marked.yaml','4f1946c8cd61ac2477b23a4103a20e2f','7847-9598726e',NULL,'2f7b3977395ee34bb4e0d6098b48ff73b20d7ef7019dd3c3e660e59af6e2cb3c',1.79591600334288287168e+09,1.79591600338221383092e+09,NULL,'consensus','two',25,1.79591600334860181801e+09,0,'all',5.38732112800062168389e+00,0,NULL,0,NULL,NULL,1);
INSERT INTO "runs" VALUES(5,'run-j4aaxrv2czeyyeltynoe4u35jm','failed','What is six times seven?','./failed.yaml','4f1946c8cd61ac2477b23a4103a20e2f','7847-9598726e',NULL,'4cdbb95678546d5cd9d3eafa96ac21820173f3d864fc83afd9268d0a36cf0aa1',1.79591600339753913878e+09,1.79591600341519975667e+09,NULL,NULL,NULL,11,1.79591600340710544586e+09,0,'all',5.38732112800062168389e+00,0,NULL,0,NULL,NULL,1);
INSERT INTO "runs" VALUES(6,'run-e373h64kzn4dhtncbp3wivkcom','cancelled','What is six times seven?','./cancelled.yaml','4f1946c8cd61ac2477b23a4103a20e2f','7847-9598726e',NULL,'f2819e1fb61f43bd28b74ecd6405d5d9df33e3aa3a68ade6e3eb9ad574e2758c',1.79591600343410587314e+09,1.79591600358749246598e+09,NULL,'best_so_far',NULL,10,1.79591600344742417338e+09,0,'all',5.38732112800062168389e+00,0,NULL,0,NULL,NULL,1);
INSERT INTO "runs" VALUES(7,'run-6wzi5vlrlfr3vmse5nmqo7tiqy','timed_out','What is six times seven?','./timed-out.yaml','4f1946c8cd61ac2477b23a4103a20e2f','7847-9598726e',NULL,'df13bdea2b1e41a49d16b23920d27f49c5931f6c5366b8cecc1c58ace7e3d32b',1.79591600359686803822e+09,1.79591600561523246767e+09,NULL,'best_so_far',NULL,10,1.79591600359873580935e+09,0,'all',5.38732112800062168389e+00,0,NULL,0,NULL,NULL,1);
INSERT INTO "runs" VALUES(8,'run-v35vgelafhttuesy5ldwfw34p4','completed','What is six times seven?','./resumed.yaml','4f1946c8cd61ac2477b23a4103a20e2f','8452-2ac4b7de',NULL,'96c9cdfd82289916db1e2b8618f8b4cf64c3bb7baa04a6bd83392c81984f1dc8',1.79591600563314509391e+09,1.79591600833716750137e+09,NULL,'consensus','one',30,1.79591600679842233658e+09,1,'all',NULL,0,NULL,0,NULL,NULL,1);
INSERT INTO "runs" VALUES(9,'run-5djqovehumflxuzhwukhrqj5z4','running','What is six times seven?','./interrupted.yaml','4f1946c8cd61ac2477b23a4103a20e2f','8452-2ac4b7de',NULL,'79d89a3ce11d8ecb75248ced878e6f071281e0ed9d144d4f726c564c8315b47a',1.79591600836544227595e+09,NULL,NULL,NULL,NULL,NULL,1.79591600837305521965e+09,0,'all',NULL,0,NULL,0,NULL,NULL,1);
CREATE INDEX runs_by_state ON runs (state, fingerprint);
CREATE INDEX runs_by_session ON runs (session_id, number) WHERE session_id IS NOT NULL;
CREATE INDEX runs_by_start ON runs (fingerprint, started);
CREATE INDEX runs_kept ON runs (kept, state) WHERE kept <> 'nothing';
CREATE INDEX runs_by_parent ON runs (parent) WHERE parent IS NOT NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('runs',9);
INSERT INTO "sqlite_sequence" VALUES('controls',4);
COMMIT;
