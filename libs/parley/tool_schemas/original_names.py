"""Arguments of calls get back the names that their tool knows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from parley.tool_schemas.argument_names import has_unsafe_names, safe_names
from parley.tool_schemas.keywords import modernised
from parley.tool_schemas.merging import flattened
from parley.tool_schemas.references import Budget, dereferenced

#: What may be read of a schema and of arguments; beyond it they are sent as the model wrote them.
ARGUMENTS_NODES_MAX: Final = 100_000
#: Arguments that are compared with a form of an object for the cost of one.
NAMES_PER_NODE: Final = 10
_ALTERNATIVES: Final = ("allOf", "anyOf", "oneOf")
_CONDITIONS: Final = ("if", "then", "else")


def original_arguments(arguments_json: bytes, input_schema_json: bytes) -> bytes:
    """Return the arguments of a call under the names of the tool."""
    if not has_unsafe_names(input_schema_json):
        return arguments_json
    try:
        schema = msgspec.json.decode(input_schema_json)
        arguments = msgspec.json.decode(arguments_json)
        restored = _Restorer(schema).restored(arguments)
    except (TypeError, ArithmeticError, ValueError, RecursionError):
        return arguments_json
    return arguments_json if restored == arguments else msgspec.json.encode(restored)


@dataclass(frozen=True, slots=True)
class _Form:
    """One form that an object or a list may have.

    Attributes:
        properties: The schemas of an object by the names of the tool.
        originals: The names of the tool by those of the provider.
        others: The schemas of properties with other names.
        first: The schemas of the first entries of a list.
        rest: The schemas of all other entries.
    """

    properties: Mapping[str, Any]
    originals: Mapping[str, str]
    others: tuple[Any, ...]
    first: Sequence[Any]
    rest: tuple[Any, ...]

    def of_entry(self, place: int) -> tuple[Any, ...]:
        """Return the schemas of an entry of a list."""
        return (self.first[place],) if place < len(self.first) else self.rest


class _Restorer:
    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._budget = Budget(ARGUMENTS_NODES_MAX)
        # By the identity of a schema, which stays alive with its forms.
        self._known: dict[int, tuple[Any, tuple[_Form, ...]]] = {}

    def restored(self, arguments: Any) -> Any:
        """Return arguments under the names that providers did not get.

        Alternatives at the top became one object, whose names were replaced together.
        """
        return self._restored(arguments, (flattened(self._root, self._root, self._budget),))

    def _restored(self, value: Any, schemas: Iterable[Any]) -> Any:
        if not isinstance(value, (list, dict)):
            return value
        several = {id(each): each for each in schemas}
        forms = [form for each in several.values() for form in self._forms_of(each)]
        self._budget.take(1 + len(forms) * (1 + len(value) // NAMES_PER_NODE))
        if not forms:
            return value
        if isinstance(value, list):
            return [
                self._restored(each, (found for form in forms for found in form.of_entry(place)))
                for place, each in enumerate(value)
            ]
        return self._object(value, forms)

    def _object(self, value: dict[str, Any], forms: list[_Form]) -> dict[str, Any]:
        if len(forms) > 1:
            # The form that has most of the names is most likely the one that is meant.
            forms = sorted(forms, key=lambda form: -sum(name in form.originals for name in value))
        restored: dict[str, Any] = {}
        for name, inner in value.items():
            original = next(
                (each.originals[name] for each in forms if name in each.originals), name
            )
            place = name if original in value or original in restored else original
            found = [each.properties[place] for each in forms if place in each.properties]
            others = (other for each in forms for other in each.others)
            restored[place] = self._restored(inner, found or others)
        return restored

    def _forms_of(self, schema: Any) -> tuple[_Form, ...]:
        known = self._known.get(id(schema))
        if known is None:
            known = (schema, tuple(self._forms(schema, frozenset())))
            self._known[id(schema)] = known
        return known[1]

    def _forms(self, schema: Any, active: frozenset[str]) -> Iterator[_Form]:
        """Yield the form of a schema, and those of its alternatives."""
        if not isinstance(schema, dict):
            return
        schema, active = dereferenced(schema, self._root, self._budget, active)
        self._budget.spend(schema)
        schema = modernised(schema)
        yield from _form(schema)
        inner = [each for name in _ALTERNATIVES for each in _list(schema.get(name))]
        inner += [schema.get(name) for name in _CONDITIONS]
        for each in (*inner, *_dict(schema.get("dependentSchemas")).values()):
            yield from self._forms(each, active)


def _form(schema: dict[str, Any]) -> Iterator[_Form]:
    """Yield the form of a schema without its alternatives, if it describes what is inside."""
    properties, first = _dict(schema.get("properties")), _list(schema.get("prefixItems"))
    # Patterns are not tried: a stranger wrote them, and they could take for ever.
    others = (*_dict(schema.get("patternProperties")).values(), schema.get("additionalProperties"))
    others = tuple(each for each in others if isinstance(each, dict))
    rest = (schema["items"],) if isinstance(schema.get("items"), dict) else ()
    if properties or others or first or rest:
        originals = {safe: name for name, safe in safe_names(properties).items()}
        yield _Form(properties, originals, others, first, rest)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
