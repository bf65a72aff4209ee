"""`python -m dovetail` is the command `dovetail`."""

import sys


def main() -> None:
    """The command line; Ctrl-C while it is being imported ends it without a traceback."""
    try:
        from dovetail.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
