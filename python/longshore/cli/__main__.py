"""`python -m longshore.cli`."""

from longshore_command import main

main()
