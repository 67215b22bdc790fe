"""Model providers: they turn a `ModelRequest` into model events."""
