-- All rows in one: stepping from row to row would hand over the interpreter's lock
-- each time, and behind a busy event loop that can take seconds.
WITH
  kept AS (
    SELECT first, last, bytes, count, entries FROM batch
    WHERE conversation = (SELECT id FROM conversation WHERE key = :key)
      AND last > :after
  ),
  sized AS (SELECT last, sum(bytes) OVER (ORDER BY last) - bytes AS older FROM kept)
SELECT
  sum(count), min(first), max(last), sum(last - first + 1),
  CAST(group_concat(entries, '') AS BLOB)
FROM (
  SELECT first, last, count, entries FROM kept
  WHERE last <= (SELECT max(last) FROM sized WHERE older <= :max_bytes)
  ORDER BY last
)
