SELECT epoch, head, oldest, live, state FROM conversation WHERE key = :key
