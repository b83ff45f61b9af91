"""The worker: claims, runs and hands over chats of the slice `turns`."""
