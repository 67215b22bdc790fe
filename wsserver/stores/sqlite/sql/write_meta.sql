-- A write that does not follow on the stored head makes `head` NULL, which the table
-- refuses: no entry is lost or doubled by a writer that is mistaken about the head.
INSERT INTO conversation (key, epoch, head, oldest, live, state, written, appended)
SELECT
  value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4,
  substr(:states, value ->> 5, value ->> 6), :now, value ->> 7
FROM json_each(:metas)
WHERE TRUE
ON CONFLICT (key) DO UPDATE SET
  epoch = excluded.epoch,
  head = CASE WHEN excluded.appended = head + 1 THEN excluded.head END,
  oldest = excluded.oldest,
  live = excluded.live,
  state = excluded.state,
  written = excluded.written,
  appended = excluded.appended
