"""Adapters for `LanguageModel`, one provider each."""
