"""Turns: worker, step loop, prompt, compaction."""
