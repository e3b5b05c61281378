"""Tests of storage mappings, of what can be tested from the console's own host.

A folder is looked into by a process of its own, since a file system that does not answer would stop this one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from django.db.models.functions import Now

from jobs.assets import site_storage
from jobs.backends.staging import bucket_requests
from jobs.models import SiteStorage

SECONDS: Final = 15
"""The timeout of the test of one folder or bucket."""

_FOLDER_PROGRAM: Final = """
import os, stat, sys, tempfile
path, read_only = sys.argv[1], sys.argv[2] == "1"
def end(code, error=None):
    print(code, error.strerror or error if error else "", sep="\\n")
    sys.exit()
try:
    if not stat.S_ISDIR(os.stat(path).st_mode):
        end("not_folder")
    next(os.scandir(path), None)
except FileNotFoundError:
    end("missing")
except OSError as error:
    end("unreadable", error)
if read_only:
    end("readable")
try:
    tempfile.TemporaryFile(dir=path).close()
except OSError as error:
    end("not_writable", error)
end("writable")
"""


def check(pk: int) -> None:
    """Test a storage mapping and store the results; nothing for one that is gone."""
    row = SiteStorage.objects.prefetch_related("clusters").filter(pk=pk).first()
    if row is not None:
        results = [_check_bucket(row)] if row.bucket else _check_folders(row)
        SiteStorage.objects.filter(pk=pk).update(test_results=results, tested_at=Now())


def _check_folders(row: SiteStorage) -> list[dict[str, str]]:
    folders = dict.fromkeys((row.folder, *(each.folder for each in row.clusters.all())))
    return [_check_folder(folder, read_only=row.read_only) for folder in folders if folder]


def _check_folder(folder: str, *, read_only: bool) -> dict[str, str]:
    argv = [sys.executable, "-I", "-S", "-c", _FOLDER_PROGRAM, folder, "1" if read_only else "0"]
    output = _run(argv)
    if output is None:
        return _result(folder, "no_answer", str(SECONDS))
    code, _, detail = output.strip().partition("\n")
    return _result(folder, code or "failed", detail)


def _check_bucket(row: SiteStorage) -> dict[str, str]:
    try:
        code = "listed" if bucket_requests.has_objects(site_storage.reveal_mapping(row), SECONDS) else "empty"
    except bucket_requests.BucketError as error:
        return _result(row.bucket, "failed" if str(error) else "no_answer", str(error) or str(SECONDS))
    return _result(row.bucket, code)


def _run(argv: Sequence[str]) -> str | None:
    """Return what a program printed; None where it did not end in time."""
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        text=True,
    )
    try:
        return process.communicate(timeout=SECONDS)[0]
    except subprocess.TimeoutExpired:
        process.kill()  # and not waited for: a file system that does not answer holds it
        return None


def _result(place: str, code: str, detail: str = "") -> dict[str, str]:
    return {"place": place, "code": code, "detail": detail[:500]}
