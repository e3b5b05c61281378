"""Read a job file, fix it, and convert it, without the console."""

from jobs.dialects import NAMES, Document, convert
from jobs.dialects.base import Refused
from jobs.dialects.checks import apply_all_fixes, check

text = """{"jobName": "my job", "image": "python:3.12",
  "taskRoles": [{"name": "main", "taskNumber": 2, "command": "echo hello"}]}"""

document = Document(text)
for found in document.candidates:  # what it may be, surest first
    print(found.name, found.confidence, found.why)
try:
    parsed = document.parsed
except Refused as refused:  # every problem at once
    for problem in refused.problems:
        print(problem.line, problem.column, problem.code, dict(problem.params), problem.fix)

document = apply_all_fixes(check(document)).document
print(document.dialect, document.parsed.spec.name, document.parsed.spec.replicas)
for to in NAMES:
    made = convert(document, to)
    print(made.document.text, [(to, loss.code, loss.pointer) for loss in made.losses])
