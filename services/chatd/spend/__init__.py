"""The ledger, spend limits and usage summaries."""
