"""Sentences about a job's alert by threshold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jobs.language import gettext
from jobs.messages import amounts
from jobs.messages.sentences import mark as _
from jobs.spec import AlertComparison, AlertMetric

METRICS: Final[Mapping[str, str]] = {
    AlertMetric.GPU: _("GPU utilization"),
    AlertMetric.CPU: _("CPU utilization"),
    AlertMetric.MEMORY: _("memory use"),
    AlertMetric.RUNNING: _("running time"),
}


def alert_words(params: Mapping[str, Any]) -> dict[str, object]:
    """Return the parts of the sentence; empty for what is no alert."""
    metric = str(params.get("metric"))
    if metric not in METRICS:
        return {}
    is_above = params.get("comparison") == AlertComparison.ABOVE
    return {
        "metric_name": gettext(METRICS[metric]),
        "seen_value": _amount(metric, params["seen"]),
        "above" if is_above else "below": _amount(metric, params["value"]),
        "time": amounts.duration(60 * params["minutes"]),
    }


def alert_message(params: Mapping[str, Any]) -> tuple[str, str]:
    """Return the text of the event, and what was measured."""
    words = alert_words(params)
    if not words:
        return gettext(_("Alert")), ""
    text = _("Alert: %(metric_name)s above %(above)s for %(time)s")
    if "below" in words:
        text = _("Alert: %(metric_name)s below %(below)s for %(time)s")
    return gettext(text) % words, gettext(_("measured: %(seen_value)s")) % words


def _amount(metric: str, value: int) -> str:
    return amounts.duration(60 * value) if metric == AlertMetric.RUNNING else f"{value} %"
