"""Keys that are equal only for the same object, and keep nothing alive."""

import gc
import weakref

from dovetail.models.tool_model import Identity


class Variable:
    """== makes a constraint, as in several tools."""

    __hash__ = None

    def __eq__(self, other):
        raise AssertionError("nobody compares variables")


def test_the_same_object_only():
    x, y = Variable(), Variable()
    assert Identity(x) == Identity(x) and hash(Identity(x)) == hash(Identity(x))
    assert Identity(x) != Identity(y)
    assert {Identity(x): 1}.get(Identity(y)) is None


def test_it_does_not_keep_the_object():
    x = Variable()
    key, watched = Identity(x), weakref.ref(x)
    del x
    gc.collect()
    assert watched() is None
    other = Variable()
    assert key != Identity(other)
