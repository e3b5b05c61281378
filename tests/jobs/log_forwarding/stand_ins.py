"""Stand-ins for log servers: they take what Loki and Elasticsearch document, and refuse what those refuse.

They answer `tests.jobs.receivers`' real HTTP server; nothing of the servers' own software is in them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.jobs.receivers import Came

Reply = tuple[int, Mapping[str, str], bytes]


@dataclass
class LokiStandIn:
    """`POST /loki/api/v1/push`: drops an entry that it has, and refuses one that is far behind its stream."""

    streams: dict[tuple[tuple[str, str], ...], list[tuple[int, str]]] = field(default_factory=dict)
    refuses_before_ns: int = 0

    def reply(self, came: Came) -> Reply:
        assert came.headers["content-type"] == "application/json"
        status = 204
        for stream in json.loads(came.body)["streams"]:
            assert all(isinstance(value, str) for value in stream["stream"].values())
            entries = self.streams.setdefault(tuple(sorted(stream["stream"].items())), [])
            for at, line in stream["values"]:
                if int(at) < self.refuses_before_ns:
                    status = 400
                elif (int(at), line) not in entries:
                    entries.append((int(at), line))
        return status, {}, b"entry too far behind" if status == 400 else b""

    def lines(self) -> list[dict[str, Any]]:
        """The lines in the order of their times, as a query returns them."""
        entries = [(at, line) for stream in self.streams.values() for at, line in stream]
        return [json.loads(line) for _at, line in sorted(entries, key=lambda entry: entry[0])]


@dataclass
class ElasticsearchStandIn:
    """`POST /<index>/_bulk` with `create`; `poison` fits no mapping, and the first `busy` ones come later."""

    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    busy: int = 0

    def reply(self, came: Came) -> Reply:
        assert came.headers["content-type"] == "application/x-ndjson"
        assert came.body.endswith(b"\n")
        rows = [json.loads(line) for line in came.body.decode().splitlines()]
        pairs = list(zip(rows[::2], rows[1::2], strict=True))
        statuses = [self._create(action["create"]["_id"], document) for action, document in pairs]
        items = [{"create": {"status": status, "error": {"reason": "why"}}} for status in statuses]
        body = {"took": 1, "errors": any(status >= 300 for status in statuses), "items": items}
        return 200, {}, json.dumps(body).encode()

    def _create(self, identity: str, document: dict[str, Any]) -> int:
        assert document["@timestamp"].endswith("Z")
        if identity in self.documents:
            return 409
        if "poison" in document["message"]:
            return 400
        if self.busy:
            self.busy -= 1
            return 429
        self.documents[identity] = document
        return 201
