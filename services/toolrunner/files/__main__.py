"""Run the program that works on files."""

from toolrunner.files.clerk import main

if __name__ == "__main__":
    main()
