"""What typing_extensions replaces in typing, on CPython before 3.13.

Private functions of typing get versions that know type parameters with defaults (PEP 696). typing calls them by name when a class is
subscripted or derived from Generic. Their results and messages are those of the originals unless a parameter has a default, and only those
of typing_extensions have one there. (Lines such as "typing._collect_parameters = ...", "typing._check_generic = ..."; 4.12 to 4.16.)
"""

from .recipes import Defaults


class Recipe(Defaults):
    """See Defaults."""

    harmless_patches = ("typing._check_generic", "typing._collect_parameters", "typing._collect_type_vars")
