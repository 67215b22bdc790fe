INSERT OR REPLACE INTO receipt (conversation, principal, command, at, receipt)
SELECT
  c.id, j.value ->> 1, j.value ->> 2, j.value ->> 3,
  substr(:receipts, j.value ->> 4, j.value ->> 5)
FROM json_each(:given) AS j
CROSS JOIN conversation AS c ON c.key = j.value ->> 0
