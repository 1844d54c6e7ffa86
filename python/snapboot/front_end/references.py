"""How many references to an object a function counts that are its own and its callers', so that any more are somebody else's.

Up to CPython 3.13 each variable, parameter and argument on the way counts. From 3.14 on those do not that only borrow from another.
Measured, since which of them do is the compiler's affair.
"""

import sys


def _of_parameter(thing):
    return sys.getrefcount(thing)


def _of_own_variable():
    thing = object()
    return sys.getrefcount(thing)


def _of_variable_of_caller():
    thing = object()
    return _of_parameter(thing)


def _passed_on(thing):
    return _of_parameter(thing)


def _of_listed_two_calls_away():
    return [_passed_on(thing) for thing in [object()]][0]


# A function counts what is in a variable of its own.
OWN_VARIABLE = _of_own_variable()
# What its caller has in a variable.
VARIABLE_OF_CALLER = _of_variable_of_caller()
# What is in a list, and in the variable with which its caller's caller goes through that list.
LISTED_TWO_CALLS_AWAY = _of_listed_two_calls_away()
