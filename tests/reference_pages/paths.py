"""What stands at a path of a JobSpec."""

from __future__ import annotations

from jobs.spec import JobSpec


def values_at(spec: JobSpec, path: str) -> list[object]:
    """All values at `path`, one for each element of the lists on the way; none where a part is missing."""
    found: list[object] = [spec.model_dump(mode="json")]
    for name in path.split("."):
        key = name.removesuffix("[]")
        found = [value[key] for value in found if isinstance(value, dict)]
        if name.endswith("[]"):
            found = [element for value in found if isinstance(value, list) for element in value]
    return found


def holds(said: list[object], wanted: list[object]) -> bool:
    """Whether everything wanted is among what is said; of maps, each member."""
    rest = list(said)
    for value in wanted:
        place = next((index for index, other in enumerate(rest) if _holds(other, value)), None)
        if place is None:
            return False
        del rest[place]
    return True


def _holds(said: object, wanted: object) -> bool:
    if isinstance(said, dict) and isinstance(wanted, dict):
        return wanted.items() <= said.items()
    return said == wanted
