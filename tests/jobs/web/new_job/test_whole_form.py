"""Every field of the form, changed one after the other as the page sends them, makes the expected file."""

from __future__ import annotations

import json
import re
from urllib.parse import urlencode

import pytest
from django.http import QueryDict

from jobs.dialects.document import Document
from jobs.form.fields import FIELDS, ROWS, WAS
from jobs.form.file_form import read
from jobs.form.values import form_name
from jobs.web.new_job.form.view import apply_posted
from tests.jobs.web.conftest import People, browser
from tests.wholeform import EXPECTED, LEFT_OUT, VALUES

ROW = re.compile(r"((tags|env|datasets|mounts|roles-0-(?:ports|init-containers|sidecars)|after)-0-)")


EACH = 12
"""Of so many changes one is sent to the address; all others to what its view applies them with."""


@pytest.mark.once
def test_job_form_with_every_field_filled_makes_the_expected_file(people: People) -> None:
    client = browser(people.owner)
    text = client.get("/jobs/new").context["text"]
    for number, (name, value) in enumerate(VALUES.items(), 1):
        row = ROW.match(name)
        cells = {key: text for key, text in VALUES.items() if row and key.startswith(row[1])}
        shown = json.dumps(dict(read(Document(text)).values))
        posted = {"text": text, "form-shown": shown, **cells, name: value}
        if number % EACH == 0 or number == len(VALUES):
            text = json.loads(client.post("/jobs/form/change", posted).content)["text"]
        else:
            sent = QueryDict(urlencode(posted))
            text = apply_posted(people.owner, sent, Document(text)).reading.text
    assert json.loads(text) == EXPECTED


def test_job_form_fields_are_all_tested_or_listed_as_excluded() -> None:
    every = {form_name(key, 0) for key in FIELDS}
    every |= {
        f"{form_name(rows.key, 0)}-0-{cell.key}"
        for rows in ROWS.values()
        for cell in rows.cells
        if cell is not WAS
    }
    assert every == set(VALUES) | set(LEFT_OUT)
    assert not set(VALUES) & set(LEFT_OUT)
