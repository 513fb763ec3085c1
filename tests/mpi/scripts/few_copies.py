"""The command `longshore` on a machine on which there is little to measure: few patterns of copies, not the subject."""

from longshore.cli import main
from longshore.tune import copies

FEW = [copies.CopyCase(*sides) for sides in (("1", "1"), ("64", "1"), ("1", "64"))]

if __name__ == "__main__":
    copies.cases = lambda quick: FEW
    main()
