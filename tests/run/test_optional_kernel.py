"""Which kernels were used, and why others were not, in words."""

import pytest
import torch

from dovetail.run.optional_kernel import OptionalKernel, in_words


def missing():
    raise ImportError("triton")


def broken(x):
    raise RuntimeError("no compiler\nand more")


def test_what_is_used_and_what_is_not():
    works, none = OptionalKernel("steps", lambda: lambda x: x + 1), OptionalKernel("descents", lambda: None)
    absent, failing = OptionalKernel("networks", missing), OptionalKernel("sums", lambda: broken)
    assert in_words([works, none]) == ""
    assert [kernel(1) for kernel in (works, none, absent, failing)] == [2, None, None, None]
    assert failing(1) is None
    said = in_words([works, none, absent, failing])
    assert said == (
        "steps in one kernel; by torch alone, networks: no Triton; "
        "by torch alone, sums: RuntimeError: no compiler"
    )


def test_too_little_memory_is_somebody_elses_matter():
    def full(x):
        raise torch.OutOfMemoryError("full")

    with pytest.raises(torch.OutOfMemoryError):
        OptionalKernel("steps", lambda: full)(1)
