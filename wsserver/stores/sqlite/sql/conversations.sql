-- A page of conversations, each with what is kept of it. Keys of one space lie between
-- `SPACE/` and `SPACE0`, as 0 follows on the slash.
SELECT
  key, epoch, head, oldest, live, written,
  (SELECT coalesce(sum(bytes), 0) FROM batch WHERE conversation = c.id)
FROM conversation AS c
WHERE key > :after AND (:space IS NULL OR (key > :space || '/' AND key < :space || '0'))
ORDER BY key
LIMIT :limit
