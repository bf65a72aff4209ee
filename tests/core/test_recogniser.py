"""Foreign objects are known by the names of their classes."""

from pathlib import PosixPath, PurePath

from dovetail.core.recogniser import of_class


def test_classes_and_those_derived_from_them():
    is_path = of_class("nothing.at.All", f"{PurePath.__module__}.PurePath")
    assert is_path(PosixPath("a")) and is_path(PurePath("a"))
    assert not is_path("a") and not is_path(PurePath)  # a class is not one of its objects


def test_the_whole_name_counts():
    class PurePath:
        pass

    assert not of_class("pathlib.PurePath")(PurePath())
