"""An MCP server made with the SDK: `stdio`, or `http` on a free port it prints."""

import sys

import anyio
import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from pydantic import BaseModel

server = MCPServer("sdk", version="1")


class Weather(BaseModel):
    city: str
    degrees: float


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
async def weather(city: str) -> Weather:
    """Says how the weather is."""
    if city == "Nowhere":
        raise ValueError("there is no such city")
    return Weather(city=city, degrees=21.5)


@server.tool()
async def wait(seconds: float, ctx: Context) -> str:
    """Waits, and says how far it is."""
    for step in range(int(seconds / 0.1)):
        await anyio.sleep(0.1)
        await ctx.report_progress(step)
    return "waited"


@server.tool()
def picture() -> list[str | Image]:
    """Shows a picture."""
    return ["Look:", Image(data=b"\x89PNG" * 300, format="png")]


@server.tool()
def huge(size: int) -> str:
    """Says much."""
    return "x" * size


@server.tool()
async def grow(ctx: Context) -> str:
    """Makes a new tool."""

    def late() -> str:
        """Came late."""
        return "here"

    server.add_tool(late)
    await ctx.notify_tools_changed()
    return "grown"


def serve_http(port: int, *, json: bool) -> None:
    app = server.streamable_http_app(json_response=json)
    config = uvicorn.Config(
        app, port=port, log_level="warning", timeout_graceful_shutdown=1
    )
    with config.bind_socket() as sock:
        sys.stdout.write(f"http://127.0.0.1:{sock.getsockname()[1]}/mcp\n")
        sys.stdout.flush()
        uvicorn.Server(config).run(sockets=[sock])


if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    serve_http(int(sys.argv[2]), json=sys.argv[3:] == ["json"])
