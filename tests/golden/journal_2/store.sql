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
INSERT INTO "digests" VALUES(1,1,'{"seconds":1.536,"attempts":2,"outcome":"plurality","agents":[{"id":"one","model":"scripted","answers":1,"dropped":null,"voted":"agent1.1","wrote":"agent1.1","spent":{"calls":10,"tokens":3100,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}},{"id":"two","model":"scripted","answers":1,"dropped":null,"voted":"agent3.1","wrote":"agent2.1","spent":{"calls":5,"tokens":1731,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}},{"id":"three","model":"scripted","answers":1,"dropped":null,"voted":"agent3.1","wrote":"agent3.1","spent":{"calls":6,"tokens":2225,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}},{"id":"four","model":"scripted","answers":0,"dropped":"auth","voted":null,"wrote":null,"spent":{"calls":0,"tokens":0,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}],"winner":"three","camp":"agent3.1","first_answer":false,"first_ballot":false,"spent":{"calls":21,"tokens":7056,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}');
INSERT INTO "digests" VALUES(2,1,'{"seconds":0.026,"attempts":1,"outcome":"single","agents":[{"id":"one","model":"scripted","answers":1,"dropped":null,"voted":null,"wrote":"agent1.1","spent":{"calls":2,"tokens":330,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}],"winner":"one","camp":"agent1.1","first_answer":true,"first_ballot":true,"spent":{"calls":2,"tokens":330,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}');
INSERT INTO "digests" VALUES(3,1,'{"seconds":0.036,"attempts":1,"outcome":"tie_broken","agents":[{"id":"one","model":"scripted","answers":1,"dropped":null,"voted":"agent1.1","wrote":"agent1.1","spent":{"calls":4,"tokens":1315,"usd":1.315,"unpriced_calls":0,"estimated_calls":0}},{"id":"two","model":"scripted","answers":1,"dropped":null,"voted":"agent2.1","wrote":"agent2.1","spent":{"calls":3,"tokens":904,"usd":0.904,"unpriced_calls":0,"estimated_calls":0}}],"winner":"one","camp":"agent1.1","first_answer":true,"first_ballot":false,"spent":{"calls":7,"tokens":2219,"usd":2.219,"unpriced_calls":0,"estimated_calls":0}}');
INSERT INTO "digests" VALUES(4,1,'{"seconds":0.015,"attempts":1,"outcome":"tie_broken","agents":[{"id":"one","model":"scripted","answers":1,"dropped":null,"voted":"agent1.1","wrote":"agent1.1","spent":{"calls":4,"tokens":1315,"usd":1.253062,"unpriced_calls":0,"estimated_calls":0}},{"id":"two","model":"scripted","answers":1,"dropped":null,"voted":"agent2.1","wrote":"agent2.1","spent":{"calls":3,"tokens":904,"usd":0.85405,"unpriced_calls":0,"estimated_calls":0}}],"winner":"one","camp":"agent1.1","first_answer":true,"first_ballot":false,"spent":{"calls":7,"tokens":2219,"usd":2.107112,"unpriced_calls":0,"estimated_calls":0}}');
INSERT INTO "digests" VALUES(5,1,'{"seconds":0.003,"attempts":1,"outcome":null,"agents":[{"id":"one","model":"scripted","answers":0,"dropped":"auth","voted":null,"wrote":null,"spent":{"calls":0,"tokens":0,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}},{"id":"two","model":"scripted","answers":0,"dropped":"model_not_found","voted":null,"wrote":null,"spent":{"calls":0,"tokens":0,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}],"winner":null,"camp":null,"first_answer":false,"first_ballot":false,"spent":{"calls":0,"tokens":0,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}');
INSERT INTO "digests" VALUES(6,1,'{"seconds":0.125,"attempts":1,"outcome":"best_so_far","agents":[{"id":"one","model":"scripted","answers":1,"dropped":null,"voted":null,"wrote":"agent1.1","spent":{"calls":1,"tokens":194,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}},{"id":"two","model":"scripted","answers":0,"dropped":null,"voted":null,"wrote":null,"spent":{"calls":1,"tokens":1774,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}],"winner":null,"camp":null,"first_answer":false,"first_ballot":false,"spent":{"calls":2,"tokens":1968,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}');
INSERT INTO "digests" VALUES(7,1,'{"seconds":2.001,"attempts":1,"outcome":"best_so_far","agents":[{"id":"one","model":"scripted","answers":1,"dropped":null,"voted":null,"wrote":"agent1.1","spent":{"calls":1,"tokens":194,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}},{"id":"two","model":"scripted","answers":0,"dropped":null,"voted":null,"wrote":null,"spent":{"calls":1,"tokens":1774,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}],"winner":null,"camp":null,"first_answer":false,"first_ballot":false,"spent":{"calls":2,"tokens":1968,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}');
INSERT INTO "digests" VALUES(8,1,'{"seconds":1.519,"attempts":1,"outcome":"consensus","agents":[{"id":"one","model":"scripted","answers":1,"dropped":null,"voted":"agent1.1","wrote":"agent1.1","spent":{"calls":5,"tokens":2928,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}},{"id":"two","model":"scripted","answers":1,"dropped":null,"voted":"agent1.1","wrote":"agent2.1","spent":{"calls":2,"tokens":567,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}],"winner":"one","camp":"agent1.1","first_answer":true,"first_ballot":true,"spent":{"calls":7,"tokens":3495,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}');
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
INSERT INTO "retention_clock" VALUES(1,5.01246043900027871131e+00,1.79551954110528492929e+09,'c21d14e6-44f4-4e09-8af6-a755ea4c5b0f',17901.595223265);
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
INSERT INTO "runs" VALUES(1,'run-5neteznxffoykp2rzeb5htjsfi','completed','What is six times seven?','./.config/massgen/team.yaml','e9d3ffc401f4f8559c8b415f3cf7e9b0','19046-282756ff',NULL,'11eefb128372a1f599ade36ad7b34ba6753b05c529165927fad92a9c9c85cdcd',1795519535.58762,1.79551953763923382752e+09,NULL,'plurality','three',96,1.7955195360913922787e+09,0,'all',4.39637188599954242818e+00,0,NULL,0,NULL,NULL,1);
INSERT INTO "runs" VALUES(2,'run-6weij5ojybc5sr2xcbsqqrxyw4','completed','What is six times seven?','./.config/massgen/asking.yaml','e9d3ffc401f4f8559c8b415f3cf7e9b0','19046-282756ff',NULL,'96d5f6b2ff00c24c47370c1b7dce17c5ace7834d1ffa50f853bd9719ffacddc2',1.79551953766679453852e+09,1.79551953770196747782e+09,NULL,'single','one',14,1.79551953766909790036e+09,0,'all',4.39637188599954242818e+00,0,NULL,0,NULL,NULL,1);
INSERT INTO "runs" VALUES(3,'run-nabgfbgkg5z2cvph5e5sf3khby','completed','What is six times seven?','./.config/massgen/raised.yaml','e9d3ffc401f4f8559c8b415f3cf7e9b0','19046-282756ff',NULL,'97c3b50415e0cf98d87cf25489b99b774386a8a7da1289a16290e6b5fc414375',1.79551953771097731584e+09,1.79551953775583338739e+09,NULL,'tie_broken','one',37,1.79551953771193647385e+09,0,'all',4.39637188599954242818e+00,0,NULL,0,NULL,NULL,1);
INSERT INTO "runs" VALUES(4,'run-5moqvmdbufdo26zpgfn6emmboy','completed','What is six times seven?','./.config/massgen/marked.yaml','e9d3ffc401f4f8559c8b415f3cf7e9b0','19046-282756ff',NULL,'765b0fe389eddd7f8ed15e605f29ee1ad683d2947a22c0fa6e643640e27c364c',1.79551953776519942281e+09,1.79551953778664875023e+09,NULL,'tie_broken','one',35,1.79551953776630902285e+09,0,'all',4.39637188599954242818e+00,0,NULL,0,NULL,NULL,1);
INSERT INTO "runs" VALUES(5,'run-dumoxkpelbpjhbqej3qbx6i45e','failed','What is six times seven?','./.config/massgen/failed.yaml','e9d3ffc401f4f8559c8b415f3cf7e9b0','19046-282756ff',NULL,'f07dbd9e2fc290e1e4ac536f95ce7e3acfdbf3a0309200e06a7c74907913cb14',1.79551953779837775225e+09,1.79551953780742835995e+09,NULL,NULL,NULL,11,1.79551953779938220975e+09,0,'all',4.39637188599954242818e+00,0,NULL,0,NULL,NULL,1);
INSERT INTO "runs" VALUES(6,'run-4kfly7qps2ibmsyy3olu3sctqa','cancelled','What is six times seven?','./.config/massgen/cancelled.yaml','e9d3ffc401f4f8559c8b415f3cf7e9b0','19046-282756ff',NULL,'fa392274bec87f8f84dd8d6cb6f0ff520f099be81860e9c4225fcc0f465f6f84',1.79551953781593418122e+09,1.79551953794972753522e+09,NULL,'best_so_far',NULL,10,1.79551953781694340703e+09,0,'all',4.39637188599954242818e+00,0,NULL,0,NULL,NULL,1);
INSERT INTO "runs" VALUES(7,'run-ebiwy54mba6hhoaxto64bt2ymq','timed_out','What is six times seven?','./.config/massgen/timed-out.yaml','e9d3ffc401f4f8559c8b415f3cf7e9b0','19046-282756ff',NULL,'5578129560a6b976fffcdbcb9a085d83db79065e82ee54bc32ab9527e68abe1d',1.79551953795400214193e+09,1.79551953996288895607e+09,NULL,'best_so_far',NULL,10,1.79551953795499515532e+09,0,'all',4.39637188599954242818e+00,0,NULL,0,NULL,NULL,1);
INSERT INTO "runs" VALUES(8,'run-6bexq55hanysqyn3k3mc5ijkj4','completed','What is six times seven?','./.config/massgen/resumed.yaml','e9d3ffc401f4f8559c8b415f3cf7e9b0','19057-ac09da48',NULL,'4a39028b4456ecbfb1a321d0e0a3b14d8b1ef4d8d0bb80d35dcea77c6c72bd31',1.79551953997446584699e+09,1.79551954263527560238e+09,NULL,'consensus','one',30,1.79551954110314130781e+09,1,'all',NULL,0,NULL,0,NULL,NULL,1);
INSERT INTO "runs" VALUES(9,'run-osfugln4iwcr5mih3ebkc2ekmi','running','What is six times seven?','./.config/massgen/interrupted.yaml','e9d3ffc401f4f8559c8b415f3cf7e9b0','19057-ac09da48',NULL,'0c5835c55834330e10531b893b018472e1bcbe692e9c90e9a3cb9974a7ec0773',1.79551954265859127048e+09,NULL,NULL,NULL,NULL,NULL,1.79551954266679096227e+09,0,'all',NULL,0,NULL,0,NULL,NULL,1);
CREATE INDEX runs_by_state ON runs (state, fingerprint);
CREATE INDEX runs_by_session ON runs (session_id, number) WHERE session_id IS NOT NULL;
CREATE INDEX runs_by_start ON runs (fingerprint, started);
CREATE INDEX runs_kept ON runs (kept, state) WHERE kept <> 'nothing';
CREATE INDEX runs_by_parent ON runs (parent) WHERE parent IS NOT NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('runs',9);
INSERT INTO "sqlite_sequence" VALUES('controls',4);
COMMIT;
