SELECT c.key
FROM json_each(:metas) AS j
CROSS JOIN conversation AS c ON c.key = j.value ->> 0 AND c.head + 1 != j.value ->> 7
WHERE c.key NOT IN (SELECT value FROM json_each(:gone))
LIMIT 1
