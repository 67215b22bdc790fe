SELECT at, texts FROM journal ORDER BY id
