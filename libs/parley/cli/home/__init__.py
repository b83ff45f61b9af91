"""The directory of one stack."""
