"""Sources of the files of a new workspace: repositories, mirrors, directories and forks."""
