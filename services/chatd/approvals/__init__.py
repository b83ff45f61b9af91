"""Approval rules: which tool calls run, which need a person's approval, which are refused."""
