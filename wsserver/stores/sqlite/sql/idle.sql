SELECT json_group_array(key) FROM (
  SELECT key FROM conversation
  WHERE NOT live AND written < :before
  ORDER BY written, key LIMIT :limit
)
