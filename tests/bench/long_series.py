"""`python -m tests.bench.long_series N …`: an ended job with a series of N points, each; print their IDs.

In the console of CONSOLE_HOME, whose admin owns the jobs.
"""

from __future__ import annotations

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
django.setup()

from django.db import transaction  # noqa: E402  # settings come first

from jobs.models import TrainingSeries  # noqa: E402
from jobs.states import State  # noqa: E402
from jobs.training_metrics import series  # noqa: E402
from jobs.training_metrics.output import Sample  # noqa: E402
from quotas.models import Quota, User  # noqa: E402
from tests.factories import make_job  # noqa: E402
from tests.stack import ADMIN  # noqa: E402


def main() -> None:
    """Make them."""
    owner, quota = User.objects.get(username=ADMIN), Quota.objects.get()
    for count in map(int, sys.argv[1:]):
        job = make_job(State.SUCCEEDED, owner=owner, quota=quota, name=f"points-{count}")
        origin = series.Origin(job.pk, "main", 1, 1, TrainingSeries.Source.OUTPUT)
        with transaction.atomic():
            series.append(origin, (Sample("loss", "step", step, 1 / (step + 1)) for step in range(count)))
        print(job.public_id)


if __name__ == "__main__":
    main()
