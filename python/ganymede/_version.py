"""The version of the package, which is that of the program it runs."""

__version__ = "0.3.0"
