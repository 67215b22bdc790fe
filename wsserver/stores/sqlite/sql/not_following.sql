SELECT c.key
FROM json_each(:metas) AS j
CROSS JOIN conversation AS c ON c.key = j.value ->> 0 AND c.head + 1 != j.value ->> 7
LIMIT 1
