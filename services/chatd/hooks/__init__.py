"""Webhooks that are told of events of chats, and decide on some of them."""
