"""`python -m marlab` is the same as `marlab`."""

from marlab.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
