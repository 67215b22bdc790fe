DELETE FROM batch WHERE id IN (
  SELECT b.id
  FROM json_each(:ranges) AS j
  CROSS JOIN conversation AS c ON c.key = j.value ->> 0
  CROSS JOIN batch AS b
    ON b.conversation = c.id AND b.last BETWEEN j.value ->> 1 AND j.value ->> 2
)
