"""When a failed model call is made again.

Pure: the caller brings the random number and does the waiting. It also knows, and
this module does not, whether anything of the failed call was shown: then it is
never made again.
"""

from typing import Final

from msgspec import Struct

from wsserver.engine.model import Failure


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """How patient a turn is with its upstream.

    Attributes:
        attempts: How often a model call is made at most, the first time included.
        base_seconds: The longest wait before the second attempt; it doubles each
            time.
        cap_seconds: What it never rises above.
        longest_wait_seconds: An upstream that asks for a longer wait is not waited
            for: the user is told instead.
    """

    attempts: int = 3
    base_seconds: float = 0.5
    cap_seconds: float = 8.0
    longest_wait_seconds: float = 60.0


DEFAULT_RETRY_POLICY: Final = RetryPolicy()


def next_attempt(
    failure: Failure,
    attempt: int,
    *,
    jitter: float,
    policy: RetryPolicy = DEFAULT_RETRY_POLICY,
) -> float | None:
    """Returns the seconds to wait before the next attempt, or None: it is final.

    The wait is exponential with full jitter, so that clients of an upstream that
    fell over do not come back all at once. What the upstream asks for is a minimum,
    and the jitter is added to it for the same reason.

    Args:
        failure: Why the last attempt failed.
        attempt: How many attempts were made, from 1.
        jitter: A random number from 0 up to 1.
        policy: The limits.
    """
    if failure.retried or not failure.retryable or attempt >= policy.attempts:
        return None
    asked = failure.retry_after_seconds or 0.0
    if asked > policy.longest_wait_seconds:
        return None
    # The exponent is bounded: 2.0**1024 is no float.
    ceiling = min(policy.cap_seconds, policy.base_seconds * 2.0 ** min(attempt - 1, 64))
    return asked + jitter * ceiling
