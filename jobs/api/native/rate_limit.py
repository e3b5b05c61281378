"""Rate limit of callers: so many requests a minute for each token, and for each person's sessions."""

from __future__ import annotations

import math
import time
from typing import Final

from django.conf import settings
from django.core.cache import cache
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from quotas.models import AccessToken

PERIOD_S: Final = 60.0


class RateLimit(BaseThrottle):
    """A minute's requests may come at once; then one at a time, evenly (the generic cell rate algorithm).

    One number a caller is stored: the time at which all of the minute's requests are available again.  It is
    in the memory of the one web process; two threads at once may let one request too many by.
    """

    def __init__(self) -> None:
        self._wait_s = 0.0

    def allow_request(self, request: Request, view: APIView) -> bool:
        limit = int(settings.CONSOLE_API_REQUESTS_PER_MINUTE)
        if not limit:
            return True
        key, now = _key_of(request), time.time()
        full_at = max(now, cache.get(key, now)) + PERIOD_S / limit
        # The smallest part more, as the sum of a whole minute may be a little above it.
        self._wait_s = full_at - now - PERIOD_S * (1 + 1e-9)
        if self._wait_s > 0:
            return False
        cache.set(key, full_at, math.ceil(full_at - now) + 1)
        return True

    def wait(self) -> float:
        """Return the seconds until the next request is allowed."""
        return self._wait_s


def _key_of(request: Request) -> str:
    token = request.auth
    return f"api-rate:{token.prefix if isinstance(token, AccessToken) else request.user.pk}"
