-- What is kept of conversations by a key, or by the id behind the space.
SELECT
  key, epoch, head, oldest, live, written,
  (SELECT coalesce(sum(bytes), 0) FROM batch WHERE conversation = c.id)
FROM conversation AS c
WHERE key = :name OR substr(key, instr(key, '/') + 1) = :name
ORDER BY key
LIMIT :limit
