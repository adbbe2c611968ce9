PRAGMA user_version=10;
BEGIN TRANSACTION;
CREATE TABLE audit (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            at REAL NOT NULL,
            person TEXT NOT NULL,
            action TEXT NOT NULL,
            run_id TEXT NOT NULL
        );
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
INSERT INTO "digests" VALUES(1,1,'{"seconds":1.601,"attempts":2,"outcome":"plurality","agents":[{"id":"one","model":"scripted","answers":1,"dropped":null,"voted":"agent1.1","wrote":"agent1.1","spent":{"calls":10,"tokens":3100,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}},{"id":"two","model":"scripted","answers":1,"dropped":null,"voted":"agent3.1","wrote":"agent2.1","spent":{"calls":5,"tokens":1731,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}},{"id":"three","model":"scripted","answers":1,"dropped":null,"voted":"agent3.1","wrote":"agent3.1","spent":{"calls":6,"tokens":2225,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}},{"id":"four","model":"scripted","answers":0,"dropped":"auth","voted":null,"wrote":null,"spent":{"calls":0,"tokens":0,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}],"winner":"three","camp":"agent3.1","first_answer":false,"first_ballot":false,"spent":{"calls":21,"tokens":7056,"usd":0.0,"unpriced_calls":0,"estimated_calls":0},"decide":"vote"}');
INSERT INTO "digests" VALUES(2,1,'{"seconds":0.027,"attempts":1,"outcome":"single","agents":[{"id":"one","model":"scripted","answers":1,"dropped":null,"voted":null,"wrote":"agent1.1","spent":{"calls":2,"tokens":330,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}],"winner":"one","camp":"agent1.1","first_answer":true,"first_ballot":true,"spent":{"calls":2,"tokens":330,"usd":0.0,"unpriced_calls":0,"estimated_calls":0},"decide":"vote"}');
INSERT INTO "digests" VALUES(3,1,'{"seconds":0.045,"attempts":1,"outcome":"consensus","agents":[{"id":"one","model":"scripted","answers":1,"dropped":null,"voted":"agent1.1","wrote":"agent1.1","spent":{"calls":2,"tokens":568,"usd":0.568,"unpriced_calls":0,"estimated_calls":0}},{"id":"two","model":"scripted","answers":1,"dropped":null,"voted":"agent1.1","wrote":"agent1.1","spent":{"calls":3,"tokens":951,"usd":0.951,"unpriced_calls":0,"estimated_calls":0}}],"winner":"two","camp":"agent1.1","first_answer":true,"first_ballot":true,"spent":{"calls":5,"tokens":1519,"usd":1.519,"unpriced_calls":0,"estimated_calls":0},"decide":"vote"}');
INSERT INTO "digests" VALUES(4,1,'{"seconds":0.019,"attempts":1,"outcome":"consensus","agents":[{"id":"one","model":"scripted","answers":1,"dropped":null,"voted":"agent1.1","wrote":"agent1.1","spent":{"calls":2,"tokens":568,"usd":0.535033,"unpriced_calls":0,"estimated_calls":0}},{"id":"two","model":"scripted","answers":1,"dropped":null,"voted":"agent1.1","wrote":"agent1.1","spent":{"calls":3,"tokens":951,"usd":0.906045,"unpriced_calls":0,"estimated_calls":0}}],"winner":"two","camp":"agent1.1","first_answer":true,"first_ballot":true,"spent":{"calls":5,"tokens":1519,"usd":1.441078,"unpriced_calls":0,"estimated_calls":0},"decide":"vote"}');
INSERT INTO "digests" VALUES(5,1,'{"seconds":0.007,"attempts":1,"outcome":null,"agents":[{"id":"one","model":"scripted","answers":0,"dropped":"auth","voted":null,"wrote":null,"spent":{"calls":0,"tokens":0,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}},{"id":"two","model":"scripted","answers":0,"dropped":"model_not_found","voted":null,"wrote":null,"spent":{"calls":0,"tokens":0,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}],"winner":null,"camp":null,"first_answer":false,"first_ballot":false,"spent":{"calls":0,"tokens":0,"usd":0.0,"unpriced_calls":0,"estimated_calls":0},"decide":"vote"}');
INSERT INTO "digests" VALUES(6,1,'{"seconds":0.13,"attempts":1,"outcome":"best_so_far","agents":[{"id":"one","model":"scripted","answers":1,"dropped":null,"voted":null,"wrote":"agent1.1","spent":{"calls":1,"tokens":194,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}},{"id":"two","model":"scripted","answers":0,"dropped":null,"voted":null,"wrote":null,"spent":{"calls":1,"tokens":1774,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}],"winner":null,"camp":null,"first_answer":false,"first_ballot":false,"spent":{"calls":2,"tokens":1968,"usd":0.0,"unpriced_calls":0,"estimated_calls":0},"decide":"vote"}');
INSERT INTO "digests" VALUES(7,1,'{"seconds":2.003,"attempts":1,"outcome":"best_so_far","agents":[{"id":"one","model":"scripted","answers":1,"dropped":null,"voted":null,"wrote":"agent1.1","spent":{"calls":1,"tokens":194,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}},{"id":"two","model":"scripted","answers":0,"dropped":null,"voted":null,"wrote":null,"spent":{"calls":1,"tokens":1774,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}],"winner":null,"camp":null,"first_answer":false,"first_ballot":false,"spent":{"calls":2,"tokens":1968,"usd":0.0,"unpriced_calls":0,"estimated_calls":0},"decide":"vote"}');
INSERT INTO "digests" VALUES(8,1,'{"seconds":1.585,"attempts":1,"outcome":"consensus","agents":[{"id":"one","model":"scripted","answers":1,"dropped":null,"voted":"agent1.1","wrote":"agent1.1","spent":{"calls":5,"tokens":2928,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}},{"id":"two","model":"scripted","answers":1,"dropped":null,"voted":"agent1.1","wrote":"agent2.1","spent":{"calls":2,"tokens":567,"usd":0.0,"unpriced_calls":0,"estimated_calls":0}}],"winner":"one","camp":"agent1.1","first_answer":true,"first_ballot":true,"spent":{"calls":7,"tokens":3495,"usd":0.0,"unpriced_calls":0,"estimated_calls":0},"decide":"vote"}');
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
INSERT INTO "retention_clock" VALUES(1,6.26992560400685761123e+00,1.79591601899134564396e+09,'ea90e36c-20be-4ce9-95af-d336e8c0ca60',37771.269359372);
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
        , session_id TEXT, outcome TEXT, winner TEXT, events INTEGER, started REAL, resumes INTEGER NOT NULL DEFAULT 0, kept TEXT NOT NULL DEFAULT 'all', aged_from REAL, journal_version INTEGER NOT NULL DEFAULT 0, directory TEXT, foreground INTEGER NOT NULL DEFAULT 0, held_back_by TEXT, parent TEXT, admitted INTEGER NOT NULL DEFAULT 1, weak TEXT NOT NULL DEFAULT '', owner TEXT NOT NULL DEFAULT '', usd REAL, turn INTEGER NOT NULL DEFAULT 0);
INSERT INTO "runs" VALUES(1,'run-iew7cxtex6p2gcnhwnuwgiyaom','completed','What is six times seven?','./.config/massgen/team.yaml','1186aaa0b1c267d76cf3e54a319bb451','8767-6815a432',NULL,'a174d7f0995bbd426ec9f6772b31b45a4e6fde4c8fed4d792580167caba4941c',1.79591601173289513592e+09,1.79591601436078906065e+09,NULL,'plurality','three',96,1.79591601273035502434e+09,0,'all',4.8585702400014270097e+00,0,NULL,0,NULL,NULL,1,'','',0.0,1);
INSERT INTO "runs" VALUES(2,'run-h5ioxko7a7upxfiavyeuxl7dlu','completed','What is six times seven?','./.config/massgen/asking.yaml','1186aaa0b1c267d76cf3e54a319bb451','8767-6815a432',NULL,'88558f1c84f383069fd4ca7805f567849868b7327a9cf584f0da38b9c0f62019',1.79591601438383054734e+09,1.79591601442214679725e+09,NULL,'single','one',14,1.79591601438569259648e+09,0,'all',4.8585702400014270097e+00,0,NULL,0,NULL,NULL,1,'','',0.0,2);
INSERT INTO "runs" VALUES(3,'run-saqsklj2bnjjqbp7fjeproypye','completed','What is six times seven?','./.config/massgen/raised.yaml','1186aaa0b1c267d76cf3e54a319bb451','8767-6815a432',NULL,'a4428ba088cdf5cb17b664ed18d99f972c75883e56438e5adfc2eb1471b32983',1.79591601443425893784e+09,1.79591601449041223526e+09,NULL,'consensus','two',28,1.79591601443590450281e+09,0,'all',4.8585702400014270097e+00,0,NULL,0,NULL,NULL,1,'','',1.519,3);
INSERT INTO "runs" VALUES(4,'run-ciyofazuqmzu2vdn55f45spzny','completed','What is six times seven?','./.config/massgen/marked.yaml','1186aaa0b1c267d76cf3e54a319bb451','8767-6815a432',NULL,'571a128070a4dc6f9e52a16dd10289c51311143c5eddd6f163d9dad27e35cf06',1.79591601450456047053e+09,1.79591601453534126285e+09,NULL,'consensus','two',25,1.79591601450697064398e+09,0,'all',4.8585702400014270097e+00,0,NULL,0,NULL,NULL,1,'','',1.441078,4);
INSERT INTO "runs" VALUES(5,'run-iecxfpriartpjxzggwye4gze5a','failed','What is six times seven?','./.config/massgen/failed.yaml','1186aaa0b1c267d76cf3e54a319bb451','8767-6815a432',NULL,'367cfddd2c396c14071df5c490d1f3f591f9ce2be06fbee24c7214aea59932df',1.7959160145486469268e+09,1.79591601457198715209e+09,NULL,NULL,NULL,11,1.79591601455142140389e+09,0,'all',4.8585702400014270097e+00,0,NULL,0,NULL,NULL,1,'','',0.0,5);
INSERT INTO "runs" VALUES(6,'run-zqusp7bdsp26ixb5fwtt6mtrka','cancelled','What is six times seven?','./.config/massgen/cancelled.yaml','1186aaa0b1c267d76cf3e54a319bb451','8767-6815a432',NULL,'7ebe159a1daae5014415c0534666ca2cdf4321abc321ee68855dd5813fb1a607',1.79591601458179569248e+09,1.7959160147356927395e+09,NULL,'best_so_far',NULL,10,1.79591601458311748507e+09,0,'all',4.8585702400014270097e+00,0,NULL,0,NULL,NULL,1,'unreviewed','',0.0,6);
INSERT INTO "runs" VALUES(7,'run-rhirduexdwqkbvlihjsaud6dyy','timed_out','What is six times seven?','./.config/massgen/timed-out.yaml','1186aaa0b1c267d76cf3e54a319bb451','8767-6815a432',NULL,'9f0aad6c97888ee75b3b5685ab2200adf6fb1e3e6391ce7424936980eba5fce1',1.79591601472644519805e+09,1.79591601675185346602e+09,NULL,'best_so_far',NULL,10,1795916014.73023,0,'all',4.8585702400014270097e+00,0,NULL,0,NULL,NULL,1,'unreviewed','',0.0,7);
INSERT INTO "runs" VALUES(8,'run-l5ugqomaiwordnjc2bnecdlhbm','completed','What is six times seven?','./.config/massgen/resumed.yaml','1186aaa0b1c267d76cf3e54a319bb451','9195-e79d075f',NULL,'dc3687ec5bad30f0e9b61300f59b2795a9f1113032cba2d4e5be3654399299f4',1.79591601677013325689e+09,1.79591602057817339901e+09,NULL,'consensus','one',30,1.7959160189917738438e+09,1,'all',NULL,0,NULL,0,NULL,NULL,1,'','',0.0,8);
INSERT INTO "runs" VALUES(9,'run-ast72gyk3whagxk6nteghpnxya','running','What is six times seven?','./.config/massgen/interrupted.yaml','1186aaa0b1c267d76cf3e54a319bb451','9195-e79d075f',NULL,'96468e93f412e4ddf35f613339120d019dfe83f9eea36295f7fbadbc359af5b9',1.7959160206208090782e+09,NULL,NULL,NULL,NULL,NULL,1.79591602064749336241e+09,0,'all',NULL,0,NULL,0,NULL,NULL,1,'','',10.0,9);
CREATE INDEX runs_by_state ON runs (state, fingerprint);
CREATE INDEX runs_by_session ON runs (session_id, number) WHERE session_id IS NOT NULL;
CREATE INDEX runs_by_start ON runs (fingerprint, started);
CREATE INDEX runs_kept ON runs (kept, state) WHERE kept <> 'nothing';
CREATE INDEX runs_by_parent ON runs (parent) WHERE parent IS NOT NULL;
CREATE INDEX runs_by_owner ON runs (owner, turn);
CREATE INDEX runs_by_turn ON runs (turn);
CREATE TRIGGER audit_kept BEFORE DELETE ON audit BEGIN SELECT raise(ABORT, 'audit is kept'); END;
CREATE TRIGGER audit_stays BEFORE UPDATE ON audit BEGIN SELECT raise(ABORT, 'audit is kept'); END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('runs',9);
INSERT INTO "sqlite_sequence" VALUES('controls',4);
COMMIT;
