"""Problem documents: their codes, texts and pages."""
