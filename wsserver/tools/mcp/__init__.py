"""The tools of MCP servers. `server` brings the SDK with `session`, as late as can be."""
