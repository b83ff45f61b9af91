"""Playing a reply as steps over time."""
