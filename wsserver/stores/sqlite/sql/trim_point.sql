-- :keep_bytes is without the text in the journal, whose first number is :journal.
WITH judged AS (
  SELECT
    last, ends_turn,
    at < :before OR sum(bytes) OVER (ORDER BY last DESC) - bytes >= :keep_bytes
      AS droppable
  FROM batch
  WHERE conversation = (SELECT id FROM conversation WHERE key = :key)
    AND last < :journal
)
SELECT coalesce(max(last), 0) FROM judged
WHERE ends_turn
  AND last < coalesce((SELECT min(last) FROM judged WHERE NOT droppable), last + 1)
