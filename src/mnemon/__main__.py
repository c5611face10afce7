"""`python -m mnemon` is the command line `mnemon`."""

from mnemon.cli import main

main()
