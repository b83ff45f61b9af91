"""Commands of administrators: what agents may do, and what they may ask."""
