-- A commit as one statement: each statement hands over the interpreter's lock, and behind
-- a busy event loop getting it back is what a commit would mostly wait for. What is
-- NULL is not asked for.
CREATE TEMP VIEW commit_of AS
SELECT
  NULL AS now, NULL AS gone, NULL AS metas, NULL AS states, NULL AS edges,
  NULL AS dropped, NULL AS batches, NULL AS entries, NULL AS trimmed, NULL AS given,
  NULL AS receipts, NULL AS senders, NULL AS since, NULL AS kept;

CREATE TEMP TRIGGER committed INSTEAD OF INSERT ON commit_of
BEGIN
  DELETE FROM conversation WHERE key IN (SELECT value FROM json_each(new.gone));

  -- A write that does not follow on the stored head makes `head` NULL, which the table
  -- refuses: no entry is lost or doubled by a writer that is mistaken about the head.
  INSERT INTO conversation (key, epoch, head, oldest, live, state, written, appended)
  SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4,
    substr(new.states, value ->> 5, value ->> 6), new.now, value ->> 7
  FROM json_each(new.metas)
  WHERE TRUE
  ON CONFLICT (key) DO UPDATE SET
    epoch = excluded.epoch,
    head = CASE WHEN excluded.appended = head + 1 THEN excluded.head END,
    oldest = excluded.oldest,
    live = excluded.live,
    state = excluded.state,
    written = excluded.written,
    appended = excluded.appended;

  -- Rows that an edge (KEY, last number before it) would cut in two.
  SELECT raise(ABORT, 'an edge cuts a row')
  FROM json_each(new.edges) AS j
  CROSS JOIN conversation AS c ON c.key = j.value ->> 0
  CROSS JOIN batch AS b
    ON b.conversation = c.id AND b.last > j.value ->> 1 AND b.first <= j.value ->> 1;

  DELETE FROM batch WHERE id IN (
    SELECT b.id
    FROM json_each(new.dropped) AS j
    CROSS JOIN conversation AS c ON c.key = j.value ->> 0
    CROSS JOIN batch AS b
      ON b.conversation = c.id AND b.last BETWEEN j.value ->> 1 AND j.value ->> 2
  );

  INSERT INTO batch (conversation, first, last, bytes, ends_turn, count, entries, at)
  SELECT
    c.id, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4, j.value ->> 5,
    substr(new.entries, j.value ->> 6, j.value ->> 7), new.now
  FROM json_each(new.batches) AS j
  CROSS JOIN conversation AS c ON c.key = j.value ->> 0;

  DELETE FROM batch WHERE id IN (
    SELECT b.id
    FROM json_each(new.trimmed) AS j
    CROSS JOIN conversation AS c ON c.key = j.value ->> 0
    CROSS JOIN batch AS b ON b.conversation = c.id AND b.last <= j.value ->> 1
  );

  INSERT OR REPLACE INTO receipt (conversation, principal, command, at, receipt)
  SELECT
    c.id, j.value ->> 1, j.value ->> 2, j.value ->> 3,
    substr(new.receipts, j.value ->> 4, j.value ->> 5)
  FROM json_each(new.given) AS j
  CROSS JOIN conversation AS c ON c.key = j.value ->> 0;

  -- Those that are older than `since` and than the `kept` newest of their principal.
  DELETE FROM receipt WHERE id IN (
    SELECT r.id
    FROM json_each(new.senders) AS j
    CROSS JOIN conversation AS c ON c.key = j.value ->> 0
    CROSS JOIN receipt AS r
      ON r.conversation = c.id AND r.principal = j.value ->> 1
      AND r.at < min(new.since, (
        SELECT n.at FROM receipt AS n
        WHERE n.conversation = c.id AND n.principal = j.value ->> 1
        ORDER BY n.at DESC LIMIT 1 OFFSET new.kept - 1
      ))
  );
END;
