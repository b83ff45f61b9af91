"""PushService."""
