"""A parameter file of the `dlc` command line → JobSpec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobs.dialects import placeholders
from jobs.dialects.base import Parsed
from jobs.dialects.dlc import elsewhere
from jobs.dialects.dlc import keys as dlc
from jobs.dialects.dlc.reading import Job
from jobs.dialects.dlc_params.document import JOB_TYPE, flattened
from jobs.dialects.dlc_params.job_type import guess
from jobs.dialects.dlc_params.keys import BY_KEY, KNOWN
from jobs.dialects.dlc_params.lines import Lines, read
from jobs.dialects.dlc_params.requests import Translated, TranslatedFindings
from jobs.dialects.document import Document
from jobs.dialects.findings import Findings
from jobs.dialects.reading_cache import read_once
from jobs.dialects.record import Record
from jobs.dialects.withhold import Withheld, withhold


@read_once
def parse(document: Document) -> Parsed:
    """Read `document`; raises Refused with all problems at once."""
    lines = read(document, KNOWN)
    given = {key: entry.value for key, entry in lines.entries.items()}
    job_type = guess(given, (comment for _offset, comment in lines.comments))
    request = Translated(given, job_type.name)
    findings = TranslatedFindings(request)
    if job_type.why != "comment":
        findings.note("job_type_guessed", "", job_type=job_type.name, why=job_type.why)
    held = withhold(request.value, dlc.SECRET_KEYS, dlc.VARIABLES)
    safe = dict(_without_secrets(given, request, held, findings))
    job = Job(held.value, findings)
    findings.refuse_if_any(lines)
    spec = job.build()
    elsewhere.remark(spec, job.value, findings)
    return Parsed(
        spec=spec,
        extras={JOB_TYPE: job_type.name, **_extras({**given, **safe}, findings)},
        notes=findings.notes(lines),
        secrets=held.secrets,
        text=_replaced(lines, safe),
    )


def _without_secrets(
    given: Mapping[str, str], request: Translated, held: Withheld, findings: Findings
) -> Iterator[tuple[str, str]]:
    """The values that hold secrets, with placeholders for those; the secrets of unknown keys go to `held`."""
    assert isinstance(held.value, dict)
    flat = flattened(held.value)
    for pointer, name in held.found.items():
        findings.note("secret_taken", pointer, key=name, name=name)
    for key in dict.fromkeys(map(request.key_of, held.found)):
        yield key, flat[key]
    for key, value in given.items():
        if key in BY_KEY or not placeholders.looks_secret(key) or placeholders.reference(value) or not value:
            continue
        held.secrets[key] = value
        findings.note("secret_taken", f"/{key}", key=key, name=key)
        yield key, placeholders.placeholder(key)


def _extras(given: Mapping[str, str], findings: Findings) -> dict[str, object]:
    """The keys that mean nothing in a JobSpec; those of the command line itself are noted as kept."""
    strangers = Record(given, "", findings).unknown(KNOWN)
    for key, value in given.items():
        param = BY_KEY.get(key)
        if param and not param.to and value:
            findings.note("kept_unused", f"/{key}", key=key)
            strangers[key] = value
    return {f"/{key}": value for key, value in strangers.items()}


def _replaced(lines: Lines, values: Mapping[str, str]) -> str:
    """The text with other values."""
    parts, done = [], 0
    for entry in sorted(lines.entries.values(), key=lambda entry: entry.start):
        if entry.key in values:
            parts += [lines.text[done : entry.value_start], values[entry.key]]
            done = entry.value_end
    return "".join(parts) + lines.text[done:]
