"""The outside in: servicers that translate, call one thing, and translate back."""
