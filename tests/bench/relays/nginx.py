"""nginx passing server-sent events through: one receive and one send per token.

Run as `python -m tests.bench.relays.nginx UPSTREAM_PORT`; prints its port and becomes
nginx, in the foreground and as one process. Ends with the process that started it.
"""

import ctypes
import os
import shutil
import signal
import socket
import sys
import tempfile
from pathlib import Path

CONFIG = """
daemon off; master_process off; pid {folder}/pid; error_log stderr crit;
worker_rlimit_nofile 16384;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    client_body_temp_path {folder}/1; proxy_temp_path {folder}/2;
    fastcgi_temp_path {folder}/3; uwsgi_temp_path {folder}/4;
    scgi_temp_path {folder}/5;
    tcp_nodelay on;
    upstream model {{ server 127.0.0.1:{upstream}; keepalive 1024; }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{
            proxy_pass http://model;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
        }}
    }}
}}
"""
_SET_PARENT_DEATH_SIGNAL = 1


def find() -> str | None:
    """Returns where nginx is; it is not on every user's PATH."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


def main() -> None:
    """Becomes nginx."""
    program = find()
    assert program is not None
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = tempfile.mkdtemp(prefix="bench-nginx-")
    config = Path(folder) / "nginx.conf"
    config.write_text(
        CONFIG.format(folder=folder, upstream=sys.argv[1], port=port), "utf-8"
    )
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    os.execv(program, [program, "-p", folder, "-c", str(config)])  # noqa: S606


if __name__ == "__main__":
    main()
