"""The page's way to the real server, which a test closes for as long as it looks."""

from playwright.sync_api import Page, WebSocketRoute

RESTART = 1012


class Tunnel:
    """While it is closed no socket comes through, however often the page dials."""

    def __init__(self, page: Page) -> None:
        self._is_closed = False
        page.route_web_socket("**/v1/chat", self._pass)

    def _pass(self, socket: WebSocketRoute) -> None:
        if self._is_closed:
            socket.close(code=RESTART)
        else:
            socket.connect_to_server()

    def close(self) -> None:
        """Those that are through stay: the page itself is to drop them."""
        self._is_closed = True

    def open(self) -> None:
        self._is_closed = False
