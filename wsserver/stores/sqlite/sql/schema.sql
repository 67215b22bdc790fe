-- Version 3. A conversation's entries are rows of `batch`: MessagePack entries one
-- after another, without the array's head, so that rows can be joined to one blob.
BEGIN;

CREATE TABLE conversation (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  epoch TEXT NOT NULL,
  head INTEGER NOT NULL,
  oldest INTEGER NOT NULL,
  live INTEGER NOT NULL,
  state BLOB NOT NULL,
  written REAL NOT NULL,
  -- The number that the newest write began at: see write_meta.sql.
  appended INTEGER NOT NULL
) STRICT;

CREATE INDEX conversation_live ON conversation (key) WHERE live;
CREATE INDEX conversation_idle ON conversation (written) WHERE NOT live;

-- Small columns stand before the blob, so that rules over rows read no overflow page.
CREATE TABLE batch (
  id INTEGER PRIMARY KEY,
  conversation INTEGER NOT NULL,
  last INTEGER NOT NULL,
  first INTEGER NOT NULL,
  at REAL NOT NULL,
  bytes INTEGER NOT NULL,
  ends_turn INTEGER NOT NULL,
  count INTEGER NOT NULL,
  entries BLOB NOT NULL,
  UNIQUE (conversation, last)
) STRICT;

CREATE TABLE receipt (
  id INTEGER PRIMARY KEY,
  conversation INTEGER NOT NULL,
  principal TEXT NOT NULL,
  command TEXT NOT NULL,
  at REAL NOT NULL,
  receipt BLOB NOT NULL,
  UNIQUE (conversation, principal, command)
) STRICT;

CREATE INDEX receipt_age ON receipt (conversation, principal, at);

CREATE TRIGGER conversation_deleted AFTER DELETE ON conversation
BEGIN
  DELETE FROM batch WHERE conversation = old.id;
  DELETE FROM receipt WHERE conversation = old.id;
END;

-- Who opened the file last, and whether it was closed in order.
CREATE TABLE opening (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  boot TEXT,
  durability TEXT NOT NULL,
  closed INTEGER NOT NULL
) STRICT;

PRAGMA application_id = 0x77737372;
PRAGMA user_version = 3;

COMMIT;
