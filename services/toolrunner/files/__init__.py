"""Files of one workspace: what is done to them beneath one directory, in a process of its own."""
