"""`python -m wsserver` is `wsserver`."""

from wsserver.cli import main

if __name__ == "__main__":
    main()
