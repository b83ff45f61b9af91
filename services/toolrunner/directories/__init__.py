"""Where the files of a workspace are, and which Linux user owns them."""
