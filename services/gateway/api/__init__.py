"""The public JSON API: inputs, conversion, OpenAPI."""
