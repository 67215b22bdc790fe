INSERT INTO journal (at, texts) VALUES (?, ?)
