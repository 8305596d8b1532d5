"""The command line as ``python -m relength``."""

from relength.cli.main import main

if __name__ == "__main__":
    main()
