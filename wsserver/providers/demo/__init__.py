"""The demo provider: a model for every situation, without a network or a key.

It is deterministic: the same request gets the same answer, token for token. It
is no fake of the test-suite: it is what the server answers with when no
upstream is configured, and what load tests run against.

`provider` is the entrance, `personalities` the list of models, `options` what
can be tuned. From there: `question` reads a request, `answer` is what a
personality makes of it, `playback` gives it out in time.
"""

from wsserver.providers.demo.options import DemoOptions
from wsserver.providers.demo.provider import DEFAULT_MODEL, DemoProvider

__all__ = ["DEFAULT_MODEL", "DemoOptions", "DemoProvider"]
