INSERT INTO opening (id, boot, durability, closed) VALUES (1, :boot, :durability, 0)
ON CONFLICT (id) DO UPDATE
SET boot = excluded.boot, durability = excluded.durability, closed = 0
