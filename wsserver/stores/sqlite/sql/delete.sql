DELETE FROM conversation WHERE key IN (SELECT value FROM json_each(:keys))
