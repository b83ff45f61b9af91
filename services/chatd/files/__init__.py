"""Files of users: stored, read by turns, uploaded and downloaded."""
