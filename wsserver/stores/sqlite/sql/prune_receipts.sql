-- Those that are older than :since and than the :kept newest of their principal.
DELETE FROM receipt WHERE id IN (
  SELECT r.id
  FROM json_each(:senders) AS j
  CROSS JOIN conversation AS c ON c.key = j.value ->> 0
  CROSS JOIN receipt AS r
    ON r.conversation = c.id AND r.principal = j.value ->> 1
    AND r.at < min(:since, (
      SELECT n.at FROM receipt AS n
      WHERE n.conversation = c.id AND n.principal = j.value ->> 1
      ORDER BY n.at DESC LIMIT 1 OFFSET :kept - 1
    ))
)
