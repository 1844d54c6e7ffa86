"""The references to an object that a function and its callers themselves contribute to a count, so that any more belong to others.

Up to CPython 3.13 each variable, parameter and argument on the way counts. From 3.14 on, those that only borrow from another do not. The
numbers are measured, since the compiler decides which of them borrow.
"""

import sys


def _of_parameter(thing):
    return sys.getrefcount(thing)


def _of_own_variable():
    thing = object()
    return sys.getrefcount(thing)


def _of_own_module():
    module = type(sys)("any")
    return sys.getrefcount(module)


def _of_variable_of_caller():
    thing = object()
    return _of_parameter(thing)


def _passed_on(thing):
    return _of_parameter(thing)


def _of_listed_two_calls_away():
    return [_passed_on(thing) for thing in [object()]][0]


# Counted by a function for an object in its own variable.
OWN_VARIABLE = _of_own_variable()
# The same for a module, to which a free-threaded build has one more reference.
OWN_MODULE = _of_own_module()
# Counted for an object in a variable of the caller.
VARIABLE_OF_CALLER = _of_variable_of_caller()
# Counted for an object in a list, and in the loop variable of the caller's caller.
LISTED_TWO_CALLS_AWAY = _of_listed_two_calls_away()
