"""Serves an ASGI application with uvicorn on a free port, and says which."""

import socket
import sys
from typing import Any

import uvicorn


def serve(app: Any) -> None:
    """Serves until the process is ended."""
    bound = socket.create_server(("127.0.0.1", 0), backlog=4096)
    sys.stdout.write(f"{bound.getsockname()[1]}\n")
    sys.stdout.flush()
    config = uvicorn.Config(app, log_level="error", access_log=False)
    uvicorn.Server(config).run(sockets=[bound])
