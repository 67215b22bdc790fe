"""One reader, one writer and one deadline task per client connection."""
