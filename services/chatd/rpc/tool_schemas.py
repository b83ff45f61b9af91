"""Whether a text is the JSON schema of a tool's arguments."""

import json
from functools import lru_cache

PROBLEM_CHARACTERS_MAX = 300


@lru_cache(maxsize=1024)
def schema_problem(text: str) -> str | None:
    """Return what is wrong with a JSON text as the schema of a tool's arguments, None if nothing.

    The answer is kept, because clients declare the same tools for every chat.
    """
    # Imported here, because it takes a while and most processes never need it.
    from jsonschema import Draft202012Validator, SchemaError
    from jsonschema.validators import validator_for

    schema = json.loads(text)
    if not isinstance(schema, dict):
        return "is not a JSON object"
    if not isinstance(schema.get("$schema", ""), str):
        return "is no JSON schema: $schema is not a string"
    if schema.get("type", "object") != "object":
        return 'describes no object; the arguments of a tool have the type "object"'
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        return f"is no JSON schema: {error.json_path}: {error.message}"[:PROBLEM_CHARACTERS_MAX]
    except RecursionError:
        return "is no JSON schema: it is nested too deeply"
    return None
