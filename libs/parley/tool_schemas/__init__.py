"""Schemas of the arguments of tools, as providers of models accept them."""

from parley.tool_schemas.dialects import SchemaDialect, check_schema, normalised
from parley.tool_schemas.original_names import original_arguments
from parley.tool_schemas.references import Budget, SchemaUnusable

__all__ = [
    "Budget",
    "SchemaDialect",
    "SchemaUnusable",
    "check_schema",
    "normalised",
    "original_arguments",
]
