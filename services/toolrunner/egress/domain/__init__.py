"""Rules of egress: which hosts a workspace may reach; no I/O."""
