"""`chat`: conversations in the terminal; `program` has the whole of it."""
