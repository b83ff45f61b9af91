"""Code shared by two or more of Parley's services, one package per subject."""
