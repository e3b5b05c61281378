"""What a view streams, as one text."""

from __future__ import annotations

import asyncio
from typing import Any


def taken(response: Any) -> str:
    """All of the answer, read as the server reads it."""

    async def read() -> bytes:
        return b"".join([piece async for piece in response.streaming_content])

    return asyncio.run(read()).decode()
