"""JSON of programs that are not trusted, made readable where one part of it is not."""

from parley.foreign_json.half_characters import without_halves
from parley.foreign_json.shallow import ShallowJson

__all__ = ["ShallowJson", "without_halves"]
