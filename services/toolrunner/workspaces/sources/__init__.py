"""Where the files of a new workspace come from: repositories, mirrors, archives."""
