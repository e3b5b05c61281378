"""A job as `{"job": "NAME", "run": "COMMAND"}`."""

from collections.abc import Mapping

from jobs.dialects.base import Guess, Parsed, Refused
from jobs.dialects.common import JsonDialect
from jobs.dialects.document import Document
from jobs.dialects.field_map import rows
from jobs.dialects.fields import Text
from jobs.dialects.findings import Findings
from jobs.dialects.record import Record
from jobs.dialects.text_renderer import JsonObject
from jobs.spec import JobSpec, RoleSpec

JOB = Text(key="job", source="Plain", path="name", required=True, help="Name of the job.")
RUN = Text(key="run", source="Plain", path="roles[].command", required=True, help="What to run.")
FIELDS = rows((JOB, RUN))


class Plain(JsonDialect):
    """The dialect: two keys, both required."""

    name = "plain"
    title = "Plain job"
    schema_keys = (JOB, RUN)

    def sniff(self, document: Document) -> Guess | None:
        try:
            value = self.read(document).value
        except Refused:
            return None
        return Guess(90, "keys_seen") if isinstance(value, dict) and {"job", "run"} <= value.keys() else None

    def parse(self, document: Document) -> Parsed:
        source, findings = self.read(document), Findings()
        record = Record(source.value if isinstance(source.value, dict) else {}, "", findings)
        name, command = record.text(JOB), record.text(RUN)
        findings.refuse_if_any(source)
        spec = JobSpec(name=name, roles=(RoleSpec(name="main", command=command),))
        return Parsed(spec, record.unknown({"job", "run"}), findings.notes(source), text=document.text)

    def build(self, spec: JobSpec, extras: Mapping[str, object]) -> JsonObject:
        return {"job": spec.name, "run": spec.roles[0].command}


DIALECT = Plain()
