"""The service address of a job: its port, its paths, and the headers that say who asks.

`jobs.node.network.service_proxy` serves it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

PORT: Final = 80

SOCKET: Final = Path("run", "job-service.sock")
"""Where the console answers, below its home, which is beside the root of attempts."""

ALIBABA_PATH: Final = "/v1/credentials/alibaba"
AWS_PATH: Final = "/v1/credentials/aws"
"""Where the console gives credentials of the job's role, as SDKs read them."""

MLFLOW_PATH: Final = "/v1/mlflow"
"""Where the console speaks MLflow's REST API; below it are the client's own paths."""

ATTEMPT: Final = b"job-console-attempt"
REPLICA: Final = b"job-console-replica"
"""The headers by which the console knows who asks: the attempt's key, the replica's position in its plan."""
