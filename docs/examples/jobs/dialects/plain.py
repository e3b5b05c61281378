"""A job as `{"job": "NAME", "run": "COMMAND"}`."""

from collections.abc import Mapping

from jobs.dialects import text_renderer
from jobs.dialects.base import Guess, Parsed, Refused, Rendered
from jobs.dialects.common import JsonDialect
from jobs.dialects.document import Document
from jobs.dialects.field_map import rows
from jobs.dialects.fields import Text
from jobs.dialects.findings import Findings
from jobs.dialects.record import Record
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

    def render(self, spec: JobSpec, extras: Mapping[str, object], base: Document | None = None) -> Rendered:
        return text_renderer.render(FORM, spec, extras, base)


def _values(spec: JobSpec, extras: Mapping[str, object]) -> dict[str, object]:
    return {"job": spec.name, "run": spec.roles[0].command}


DIALECT = Plain()
FORM = text_renderer.Form("plain", DIALECT.parse, _values, text_renderer.write_json, lambda *_values: None)
