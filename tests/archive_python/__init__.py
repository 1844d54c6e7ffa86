"""Tests of the boot archive of CPython."""
