-- Rows that an edge (KEY, last number before it) would cut in two.
SELECT c.key
FROM json_each(:edges) AS j
CROSS JOIN conversation AS c ON c.key = j.value ->> 0
CROSS JOIN batch AS b
  ON b.conversation = c.id AND b.last > j.value ->> 1 AND b.first <= j.value ->> 1
WHERE c.key NOT IN (SELECT value FROM json_each(:gone))
LIMIT 1
