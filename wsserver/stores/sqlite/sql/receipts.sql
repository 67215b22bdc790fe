-- All receipts in one blob, for the reason given in read.sql.
SELECT count(*), CAST(group_concat(receipt, '') AS BLOB)
FROM (
  SELECT receipt FROM (
    SELECT
      id, at, receipt,
      row_number() OVER (PARTITION BY principal ORDER BY at DESC, id DESC) AS rank
    FROM receipt
    WHERE conversation = (SELECT id FROM conversation WHERE key = :key)
  )
  WHERE at >= :since OR rank <= :limit
  ORDER BY at, id
)
