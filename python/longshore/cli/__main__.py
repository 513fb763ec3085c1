"""`python -m longshore.cli`."""

from . import main

main()
