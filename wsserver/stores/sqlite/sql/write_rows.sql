INSERT INTO batch (conversation, first, last, bytes, ends_turn, count, entries, at)
SELECT
  c.id, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4, j.value ->> 5,
  substr(:entries, j.value ->> 6, j.value ->> 7), :now
FROM json_each(:rows) AS j
CROSS JOIN conversation AS c ON c.key = j.value ->> 0
