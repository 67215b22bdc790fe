-- All rows in one: stepping from row to row would hand over the interpreter's lock
-- each time, and behind a busy event loop that can take seconds.
WITH
  asked AS (SELECT id FROM conversation WHERE key = :key),
  sized AS (
    SELECT
      last,
      sum(bytes) OVER (ORDER BY last ROWS UNBOUNDED PRECEDING) - bytes AS older
    FROM batch
    WHERE conversation = (SELECT id FROM asked) AND last > :after
  )
SELECT
  sum(count), min(first), max(last), sum(last - first + 1),
  CAST(group_concat(entries, '') AS BLOB)
FROM (
  SELECT first, last, count, entries FROM batch
  WHERE conversation = (SELECT id FROM asked)
    AND last > :after
    AND last <= (SELECT max(last) FROM sized WHERE older <= :max_bytes)
  ORDER BY last
)
