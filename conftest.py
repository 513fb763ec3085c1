"""Tests say which profile of the machine there is: none, unless they bring one."""

import os

os.environ["LONGSHORE_PROFILE"] = os.path.join(os.devnull, "none")
