-- What each worker has of the limits of providers, until its lease ends; times are PostgreSQL's, in seconds.
CREATE TABLE shares (
    place TEXT NOT NULL,             -- a fingerprint of the provider's address and the key for it
    name TEXT NOT NULL,              -- of the limit
    worker TEXT NOT NULL,
    address TEXT NOT NULL,
    most INTEGER,                    -- the limit, as the configs of its runs have it
    need INTEGER NOT NULL,
    share INTEGER,                   -- so much it was told to use; NULL: any number
    held INTEGER,                    -- so much it may still use, for want of its word that it does not
    since DOUBLE PRECISION NOT NULL, -- when it got a share, or began to wait for one
    ends DOUBLE PRECISION NOT NULL,
    paused_until DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (place, name, worker)
);
