"""Errors of a rejected body that its type does not show: rules that only services check.

A body whose types are right is checked by the service that gets it. One that the decoder rejects
never gets there, so the same rules are checked here, and one response has all errors.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from msgspec import inspect

from gateway.http.problems.errors import FieldError, violated_rule
from gateway.http.problems.field_paths import escaped

#: Key of `msgspec.Meta.extra` under which a type has the check of its values.
PROBLEM_OF: Final = "problem_of"

#: Returns what is wrong with a JSON value of the right type; None if nothing is.
ProblemOf = Callable[[Any], str | None]


def rule_errors_of(
    value: object, body_type: Any, found: tuple[FieldError, ...], most: int
) -> tuple[FieldError, ...]:
    """Return at most so many errors of a body, beside those that were found in its types."""
    reported = frozenset(each.pointer or "" for each in found)
    # Whatever contains an error cannot be checked as a whole.
    above = frozenset(
        pointer[:place]
        for pointer in reported
        for place in range(len(pointer))
        if pointer[place] == "/"
    )
    walk = _Walk(reported, reported | above)
    return tuple(islice(walk.errors(value, inspect.type_info(body_type), ""), max(0, most)))


class _Walk:
    """Finds the errors of a document.

    Args:
        reported: Pointers of errors that are known already.
        unsound: These, and the pointers of everything that contains one.
    """

    def __init__(self, reported: frozenset[str], unsound: frozenset[str]) -> None:
        self._reported = reported
        self._unsound = unsound

    def errors(self, value: object, kind: Any, pointer: str) -> Iterator[FieldError]:
        if pointer and pointer in self._reported:
            return
        match kind:
            case inspect.Metadata(type=inner, extra=extra):
                yield from self.errors(value, inner, pointer)
                yield from self._own_error(value, extra or {}, pointer)
            case inspect.UnionType(types=members) if value is not None:
                chosen = _chosen(value, members)
                if chosen is not None:
                    yield from self.errors(value, chosen, pointer)
            case inspect.StructType(fields=fields) if isinstance(value, dict):
                for field in fields:
                    if field.encode_name in value:
                        at = f"{pointer}/{escaped(field.encode_name)}"
                        yield from self.errors(value[field.encode_name], field.type, at)
            case inspect.DictType(value_type=member) if isinstance(value, dict):
                for key, item in value.items():
                    yield from self.errors(item, member, f"{pointer}/{escaped(key)}")
            case inspect.VarTupleType(item_type=member) if isinstance(value, list):
                for index, item in enumerate(value):
                    yield from self.errors(item, member, f"{pointer}/{index}")

    def _own_error(
        self, value: object, extra: Mapping[str, Any], pointer: str
    ) -> Iterator[FieldError]:
        problem_of: ProblemOf | None = extra.get(PROBLEM_OF)
        if problem_of is None or pointer in self._unsound:
            return
        problem = problem_of(value)
        if problem is not None:
            yield violated_rule(problem, pointer)


def _chosen(value: object, members: tuple[Any, ...]) -> Any:
    """Return the member of a union that a value belongs to; None if that cannot be said."""
    others = [member for member in members if not isinstance(member, inspect.NoneType)]
    if len(others) == 1:
        return others[0]
    tags = {each.tag: each for each in others if isinstance(each, inspect.StructType)}
    if not isinstance(value, dict):
        return None
    tag_field = next((each.tag_field for each in tags.values()), None)
    tag = value.get(tag_field)
    return tags.get(tag) if isinstance(tag, str) else None
