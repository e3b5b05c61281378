"""The edits that make a JSON text say what another document says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobs.dialects.edit import Drop, Put
from jobs.dialects.spans import escape

Change = Put | Drop


class CannotPatchError(Exception):
    """The order of a list would have to change: only writing it anew says that."""


def difference(
    before: object, after: object, there: object, identities: Mapping[str, str]
) -> list[Change] | None:
    """Edits to a text holding `there`, which says what the document `before` says, so that it says `after`.

    `identities` names, for a list under a key, the member that tells its elements apart.  Returns None
    when the elements would have to change places.
    """
    try:
        return list(_object(before, after, there, "", identities))
    except CannotPatchError:
        return None


def _object(
    before: object, after: object, there: object, pointer: str, identities: Mapping[str, str]
) -> Iterator[Change]:
    if not (isinstance(before, dict) and isinstance(after, dict) and isinstance(there, dict)):
        yield Put(pointer, after)
        return
    for key, value in after.items():
        where = f"{pointer}/{escape(key)}"
        if key in before and before[key] == value:
            continue
        identity = identities.get(key)
        if identity and isinstance(there.get(key), list):
            yield from _list(before.get(key), value, there[key], where, identity, identities)
        elif isinstance(value, dict) and isinstance(there.get(key), dict):
            yield from _object(before.get(key, {}), value, there[key], where, identities)
        else:
            yield Put(where, value)
    for key in before:
        if key not in after and key in there:
            yield Drop(f"{pointer}/{escape(key)}")


def _list(
    before: object,
    after: object,
    there: list[object],
    pointer: str,
    identity: str,
    identities: Mapping[str, str],
) -> Iterator[Change]:
    old, new = _by_identity(before, identity), _by_identity(after, identity)
    now = _names_now(old, new)
    if list(new)[: len(now)] != list(now.values()):
        raise CannotPatchError
    names = [str(element.get(identity)) if isinstance(element, dict) else "" for element in there]
    counting = {name: index for index, name in enumerate(names)}  # of equal names the last one counts
    for index, (name, element) in enumerate(zip(names, there, strict=True)):
        where = f"{pointer}/{index}"
        if name not in now:
            yield Drop(where)
        elif name != now[name]:
            yield from _object(_shared(old[name], new[now[name]]), new[now[name]], element, where, identities)
        elif index == counting[name] and old[name] != new[name]:
            yield from _object(old[name], new[name], element, where, identities)
    for name, element in new.items():
        if name not in now.values():
            yield Put(f"{pointer}/-", element)


def _names_now(old: Mapping[str, object], new: Mapping[str, object]) -> dict[str, str]:
    """What each element that stays is called now: of as many elements, the one in its place."""
    renamed = zip(old, new, strict=True) if len(old) == len(new) else ()
    changed = {name: other for name, other in renamed if name not in new and other not in old}
    return {name: changed.get(name, name) for name in old if name in new or name in changed}


def _shared(before: object, after: object) -> object:
    """`before` without what `after` lacks: extras are filed under the old name, and stay in the text."""
    if isinstance(before, dict) and isinstance(after, dict):
        return {key: value for key, value in before.items() if key in after}
    return before


def _by_identity(elements: object, identity: str) -> dict[str, object]:
    if not isinstance(elements, list):
        return {}
    return {str(element[identity]): element for element in elements}
