"""The handlers of routes and the table of them."""
