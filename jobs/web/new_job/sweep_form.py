"""The New job page's part for sweeps: the parameters as they are typed, and how many jobs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy

from jobs.dialects.base import Problem
from jobs.messages.findings import Finding, of_problem
from jobs.submission.sweeps.expansion import MOST, CannotSweepError, combinations
from jobs.submission.sweeps.parameter_text import LONGEST, InvalidParameters, SweepValues, parse_parameters

EXAMPLE: Final = "env.LR = 0.1, 0.01\nroles.0.resources.gpus = 1, 2"


class AtOnceForm(forms.Form):
    """How many jobs of a sweep may be under way at a time."""

    at_once = forms.IntegerField(
        label=gettext_lazy("Max concurrent jobs"),
        min_value=1,
        max_value=MOST,
        widget=forms.NumberInput({"class": "form-control"}),
    )


class SweepForm(forms.Form):
    """The parameters, one a line or as JSON; without a number all jobs may be under way."""

    use_required_attribute = False  # the page's other buttons need no parameters

    sweep_parameters = forms.CharField(
        label=gettext_lazy("Parameters"),
        max_length=LONGEST,
        strip=False,
        widget=forms.Textarea(
            {"class": "form-control mono", "rows": 4, "spellcheck": "false", "placeholder": EXAMPLE}
        ),
    )
    sweep_at_once = forms.IntegerField(
        label=gettext_lazy("Max concurrent jobs"),
        required=False,
        min_value=1,
        max_value=MOST,
        widget=forms.NumberInput({"class": "form-control"}),
    )

    def __init__(self, *args: Any, of_array: bool = False, **kwargs: Any) -> None:
        """With `of_array` the file itself has the parameters."""
        super().__init__(*args, **kwargs)
        self.fields["sweep_parameters"].required = not of_array

    def clean_sweep_parameters(self) -> SweepValues:
        """Return the parameters of the lines or the JSON."""
        return clean_parameters(self.cleaned_data["sweep_parameters"])


@dataclass(frozen=True, slots=True)
class SweepPart:
    """The part as it is shown: the form, and the problems of the sweep."""

    form: SweepForm
    problems: Sequence[Finding] = ()
    is_submitted: bool = False

    @property
    def is_open(self) -> bool:
        """Tell whether the part is unfolded."""
        return self.is_submitted or self.is_meant

    @property
    def is_meant(self) -> bool:
        """Tell whether there are parameters: then the page's main button submits a sweep."""
        return has_parameters(str(self.form["sweep_parameters"].value() or ""))

    @property
    def jobs(self) -> int:
        """Return how many jobs the parameters make, 0 where they make none."""
        try:
            typed = parse_parameters(str(self.form["sweep_parameters"].value() or ""))
            return len(combinations(typed.grid, typed.listed))
        except (InvalidParameters, CannotSweepError):
            return 0


def clean_parameters(text: str) -> SweepValues:
    """Return the parameters of a form's field.  Raises ValidationError."""
    try:
        return parse_parameters(text)
    except InvalidParameters as error:
        raise forms.ValidationError([*error.messages]) from error


def has_parameters(text: str) -> bool:
    """Return whether the text has parameters, be they right or wrong."""
    lines = (line.strip() for line in text.splitlines())
    return any(line and not line.startswith("#") for line in lines)


def fill_part(sent: Mapping[str, Any]) -> SweepPart:
    """Return the part with the typed values, without validation."""
    names = SweepForm.base_fields
    return SweepPart(SweepForm(initial={name: str(sent.get(name, "")) for name in names}))


def initial_part(parameters: str, at_once: str = "") -> SweepPart:
    """Return the part with the values of a draft or a template."""
    return fill_part({"sweep_parameters": parameters, "sweep_at_once": at_once})


def refused_part(form: SweepForm, problems: Sequence[Problem]) -> SweepPart:
    """The part with the problems of a sweep that was not accepted."""
    return SweepPart(form, tuple(of_problem(problem, ()) for problem in problems), is_submitted=True)
