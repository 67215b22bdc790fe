"""What keeps a server running, and what ends it; `wsserver.process` is the life itself."""
