"""Reports changes of the OpenAPI document that break clients which were generated from it.

What clients send may become optional and wider, what they receive may get more members; the
reverse breaks them. Compared are paths, operations, parameters, bodies, responses and schemas.
Documents of different versions (`info.version`) are not compared: a change that has to break
clients comes with a new version.

Usage:
    openapi_breaking.py [earlier.json later.json]

Without files the document of main, or of its parent if main has the same, is compared with that
of the working tree.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = Path("services/gateway/api/openapi.json")
VERBS = ("get", "put", "post", "delete", "patch")
SCHEMAS = "#/components/schemas/"
#: Bounds -> whether a larger value allows more.
BOUNDS: Mapping[str, bool] = {
    "maxLength": True,
    "maxItems": True,
    "maxProperties": True,
    "maximum": True,
    "minLength": False,
    "minItems": False,
    "minimum": False,
}

Schema = Mapping[str, Any]


def main() -> int:
    """Print the breaking changes; fail if there are any."""
    if len(sys.argv) == 3:
        earlier, later = (json.loads(Path(name).read_text()) for name in sys.argv[1:])
    else:
        later = json.loads((ROOT / DOCUMENT).read_text())
        found = earlier_document()
        if found is None:
            print("no earlier document to compare with")
            return 0
        earlier = found
    if earlier["info"]["version"] != later["info"]["version"]:
        return 0
    changes = [*breaking_changes(earlier, later)]
    print("\n".join(changes))
    return int(bool(changes))


def earlier_document() -> Any:
    """Return the document of main, of its parent if main has the same; None without either."""
    now = (ROOT / DOCUMENT).read_bytes()
    for commit in ("main", "main~1"):
        command = ["git", "show", f"{commit}:{DOCUMENT}"]
        shown = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
        if shown.returncode == 0 and shown.stdout != now:
            return json.loads(shown.stdout)
    return None


def breaking_changes(earlier: Any, later: Any) -> Iterator[str]:
    """Yield the breaking changes between two documents."""
    for path, item in earlier["paths"].items():
        for verb in VERBS:
            if verb not in item:
                continue
            place = f"{verb.upper()} {path}"
            if verb not in later["paths"].get(path, {}):
                yield f"{place}: removed"
                continue
            yield from _Comparison(earlier, later, place).changes(
                item[verb], later["paths"][path][verb]
            )


class _Comparison:
    """Compares one operation of two documents."""

    def __init__(self, earlier: Any, later: Any, place: str) -> None:
        self._earlier = earlier
        self._later = later
        self._place = place
        self._seen: set[tuple[str, bool]] = set()

    def changes(self, old: Any, new: Any) -> Iterator[str]:
        if old["operationId"] != new["operationId"]:
            yield f"{self._place}: operationId was {old['operationId']}"
        yield from self._parameters(old, new)
        yield from self._request(old, new)
        for status, response in old["responses"].items():
            if status == "default":
                continue
            if status not in new["responses"]:
                yield f"{self._place}: no response {status} any more"
                continue
            was = self._resolved(self._earlier, response).get("content", {})
            now = self._resolved(self._later, new["responses"][status]).get("content", {})
            yield from self._contents(was, now, f"response {status}", is_input=False)

    def _parameters(self, old: Any, new: Any) -> Iterator[str]:
        was, now = self._named(self._earlier, old), self._named(self._later, new)
        for key, parameter in was.items():
            if key not in now:
                yield f"{self._place}: parameter {key} removed"
                continue
            place = f"parameter {key}"
            yield from self._schema(parameter["schema"], now[key]["schema"], place, is_input=True)
        for key, parameter in now.items():
            was_required = was.get(key, {}).get("required", False)
            if parameter.get("required", False) and not was_required:
                yield f"{self._place}: parameter {key} is required now"

    def _named(self, document: Any, operation: Any) -> dict[str, Any]:
        found = (self._resolved(document, each) for each in operation.get("parameters", ()))
        return {f"{each['in']} {each['name']}": each for each in found}

    def _request(self, old: Any, new: Any) -> Iterator[str]:
        was, now = old.get("requestBody"), new.get("requestBody")
        if now is not None and now.get("required") and not (was or {}).get("required"):
            yield f"{self._place}: the body is required now"
        if was is not None and now is None:
            yield f"{self._place}: the body is removed"
        elif was is not None:
            yield from self._contents(was["content"], now["content"], "body", is_input=True)

    def _contents(self, old: Any, new: Any, place: str, *, is_input: bool) -> Iterator[str]:
        for media_type, content in old.items():
            if media_type not in new:
                yield f"{self._place}: {place}: {media_type} removed"
                continue
            was, now = content.get("schema", {}), new[media_type].get("schema", {})
            yield from self._schema(was, now, place, is_input=is_input)

    def _schema(self, old: Schema, new: Schema, at: str, *, is_input: bool) -> Iterator[str]:
        name = old.get("$ref", "")
        if name:
            if (name, is_input) in self._seen:
                return
            self._seen.add((name, is_input))
            at = name.removeprefix(SCHEMAS)
        old, new = self._resolved(self._earlier, old), self._resolved(self._later, new)
        place = f"{self._place}: {at}"
        yield from _types(old, new, place, is_input=is_input)
        yield from _values(old, new, place, is_input=is_input)
        if is_input:
            yield from _bounds(old, new, place)
        yield from _required(old, new, place, is_input=is_input)
        for member, inner in old.get("properties", {}).items():
            if member not in new.get("properties", {}):
                yield f"{place}.{member}: removed"
                continue
            yield from self._schema(
                inner, new["properties"][member], f"{at}.{member}", is_input=is_input
            )
        for key in ("items", "additionalProperties"):
            if isinstance(old.get(key), dict) and isinstance(new.get(key), dict):
                yield from self._schema(old[key], new[key], f"{at}[]", is_input=is_input)
        yield from self._choices(old, new, at, is_input=is_input)

    def _choices(self, old: Schema, new: Schema, at: str, *, is_input: bool) -> Iterator[str]:
        was, now = _choices_of(old), _choices_of(new)
        for key, inner in was.items():
            if key in now:
                yield from self._schema(inner, now[key], at, is_input=is_input)
            elif is_input:
                yield f"{self._place}: {at}: {key.removeprefix(SCHEMAS)} is not accepted any more"
        if not is_input and was and "null" in now.keys() - was.keys():
            yield f"{self._place}: {at}: may be null now"

    def _resolved(self, document: Any, value: Any) -> Any:
        while "$ref" in value:
            found = document
            for step in value["$ref"].removeprefix("#/").split("/"):
                found = found[step]
            value = found
        return value


def _types(old: Schema, new: Schema, place: str, *, is_input: bool) -> Iterator[str]:
    was, now = _types_of(old), _types_of(new)
    gone, added = was - now, now - was
    if (gone if is_input else added) and was and now:
        yield f"{place}: type was {', '.join(sorted(was))}, is {', '.join(sorted(now))}"
    if old.get("format") != new.get("format") and new.get("format"):
        yield f"{place}: format was {old.get('format')}, is {new['format']}"


def _values(old: Schema, new: Schema, place: str, *, is_input: bool) -> Iterator[str]:
    was, now = _values_of(old), _values_of(new)
    if not was:
        if now and is_input:
            yield f"{place}: accepts only {', '.join(map(str, now))} now"
        return
    for value in was:
        # Removing an output value is compatible, but a const tells kinds apart.
        if now and value not in now and (is_input or "const" in old):
            yield f"{place}: value {value} removed"


def _bounds(old: Schema, new: Schema, place: str) -> Iterator[str]:
    for key, larger_is_wider in BOUNDS.items():
        was, now = old.get(key), new.get(key)
        if now is None or was == now:
            continue
        if was is None or (now < was) is larger_is_wider:
            yield f"{place}: {key} was {was}, is {now}"


def _required(old: Schema, new: Schema, place: str, *, is_input: bool) -> Iterator[str]:
    was, now = {*old.get("required", ())}, {*new.get("required", ())}
    for member in sorted(now - was if is_input else was - now):
        if is_input:
            yield f"{place}.{member}: is required now"
        elif member in new.get("properties", {}):
            yield f"{place}.{member}: may be absent now"


def _types_of(schema: Schema) -> set[str]:
    kind = schema.get("type", ())
    return {kind} if isinstance(kind, str) else {*kind}


def _values_of(schema: Schema) -> list[Any]:
    return [schema["const"]] if "const" in schema else [*schema.get("enum", ())]


def _choices_of(schema: Schema) -> dict[str, Schema]:
    """Return the choices of a schema by what names them."""
    choices = schema.get("oneOf") or schema.get("anyOf") or ()
    return {each.get("$ref") or str(each.get("type")): each for each in choices}


if __name__ == "__main__":
    raise SystemExit(main())
