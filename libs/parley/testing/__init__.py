"""Tools for tests and load: a scripted model provider, a load test, fault points."""
