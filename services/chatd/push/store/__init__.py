"""Push subscriptions and the VAPID key pair in PostgreSQL."""
