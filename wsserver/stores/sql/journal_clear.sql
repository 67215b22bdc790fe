DELETE FROM journal
