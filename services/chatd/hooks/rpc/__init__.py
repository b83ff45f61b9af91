"""HookService."""
