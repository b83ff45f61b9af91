"""The advisor: a model without tools that an agent asks before hard decisions."""
