"""One reader, one writer and one alarm per client connection."""
