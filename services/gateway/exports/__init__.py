"""Exports of accounts: collects all that is a person's from chatd and from here."""
