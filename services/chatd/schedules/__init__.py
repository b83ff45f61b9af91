"""Schedules: messages that are sent at a time or repeatedly, without their owner."""
