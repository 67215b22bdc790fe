"""What a server says at `/metrics`."""

import urllib.request
from collections.abc import Callable

import anyio
import anyio.to_thread
from prometheus_client.parser import text_string_to_metric_families

WAIT_SECONDS = 10.0


class Scrape:
    """The numbers of one moment."""

    def __init__(self, text: str) -> None:
        self._families = list(text_string_to_metric_families(text))

    def value(self, name: str, **labels: str) -> float:
        """Returns the sum of all series of that name which have these labels."""
        return sum(
            sample.value
            for family in self._families
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )


async def scrape(http: str) -> Scrape:
    """Reads the metrics of the server at an address, such as `http://127.0.0.1:80`."""

    def read() -> str:
        with urllib.request.urlopen(f"{http}/metrics", timeout=5) as answer:  # noqa: S310
            return answer.read().decode()

    return Scrape(await anyio.to_thread.run_sync(read))


async def scraped(http: str, holds: Callable[[Scrape], object]) -> Scrape:
    """Reads them until something holds: what is counted may come after what is sent."""
    with anyio.fail_after(WAIT_SECONDS):
        while not holds(found := await scrape(http)):
            await anyio.sleep(0.05)
    return found
