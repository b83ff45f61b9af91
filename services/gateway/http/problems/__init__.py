"""Problem documents: their kinds, texts and pages."""
