"""How an upstream is reached over HTTP: connections, and bytes where they arrive."""
