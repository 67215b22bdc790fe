-- Keys of one space lie between `SPACE/` and `SPACE0`, as 0 follows on the slash; so do
-- those of a space whose name begins with it and a slash.
SELECT count(*) FROM conversation
WHERE key > :space || '/' AND key < :space || '0'
  AND instr(substr(key, length(:space) + 2), '/') = 0
