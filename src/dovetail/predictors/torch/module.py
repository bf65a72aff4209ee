"""Any `torch.nn.Module` as a predictor; a trained skorch net as the module inside it.

`predict` runs the owner's module on its device, in its own dtype, in evaluation mode; the mode is restored
after every call. Gradients never touch the owner's module: they run through a float64 copy in evaluation
mode with frozen parameters. Where the module's code requests a lower precision (`x.half()`, say), the copy
uses float64 instead. skorch's own `predict_proba` may add a softmax or a sigmoid, depending on the training
loss. Here no layer is added: a module that ends in logits gives logits, and a class is decided at 0.

Nothing is claimed of the arithmetic of a network that may multiply in a coarser precision than its dtype:
under autocast, or where the process allows TF32 or bfloat16 in matrix products.

To record its program, the module itself is run, in its own dtype and with its hooks, on a row without
numbers (`Traced`). So the record holds for all inputs, and code that looks at values is refused. One row is
enough: modules whose rows influence each other were refused when the predictor was added.
"""

from __future__ import annotations

import importlib
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dovetail.core.arrays import FloatArray
from dovetail.core.deadline import require_time
from dovetail.core.description import Description
from dovetail.core.errors import PredictorError, UnsupportedError
from dovetail.networks.arithmetic import FLOAT64, FORMATS, Arithmetic
from dovetail.networks.layers import Layer, program_of
from dovetail.networks.program import Program, Recording
from dovetail.predictors.torch.frozen_copy import (
    MODES,
    CopyMode,
    FrozenCopy,
    UndecidedCopy,
    as_table,
    first_that_runs,
    frozen,
    in_first_dtype,
    likeliest_first,
)
from dovetail.predictors.torch.layers import TorchOperation, parts_of, proved_layers
from dovetail.predictors.torch.traced import Constants, Traced, as_traced

IMPORTS = 20.0
"""Factors on the import time of mpmath for the remaining imports: 27 with compiled files, 9 without."""


def _import_dispatch() -> None:
    """Torch imports sympy and its own distributed tensors when it first meets a traced one.

    These imports take up to ten seconds on a busy machine, and no check of the clock interrupts them. The
    import time of mpmath, a small part of the whole, predicts the time of the other imports.
    """
    if "torch.distributed.tensor" in sys.modules or not torch.distributed.is_available():
        return
    begin = time.perf_counter()
    importlib.import_module("mpmath")
    require_time(IMPORTS * (time.perf_counter() - begin))
    importlib.import_module("torch.distributed.tensor")


def recorded_program(
    name: str, run: Callable[[Tensor], Any], features: int, dtype: torch.dtype, device: str
) -> Program:
    """The program of `run` for one row; an `UnsupportedError` says what cannot be followed."""
    _import_dispatch()
    recording = Recording(features)
    row = Traced(torch.arange(features)[None], recording, dtype, torch.device(device))
    try:
        with torch.no_grad(), Constants(row):
            outputs = as_table(run(row), 1)
    except UnsupportedError as reason:
        raise UnsupportedError(f"{name} has no bound: {reason}") from reason
    except Exception as reason:
        raise UnsupportedError(
            f"{name} has no bound: it cannot be followed ({type(reason).__name__}: {reason})"
        ) from reason
    return recording.program(as_traced(outputs, row).flat.copy())


MODE = threading.RLock()
"""Held while a module is in evaluation mode, because another thread might switch it back."""


WITHOUT_CURVATURE = (
    "Relu", "LeakyRelu", "Prelu", "Threshold", "Hardtanh", "Clamp", "Abs", "Max", "Amax", "Min", "Amin",
    "Where", "Sort", "Topk", "Hardswish", "Hardsigmoid", "AdaptiveMax", "ByNumpy", "Named",
)  # fmt: skip
"""Autograd nodes without a useful second derivative, by the beginning of their names; the last ones are our
own."""

PASSING = ("Squeeze", "Unsqueeze", "View", "Reshape", "Alias", "Clone", "ToCopy", "Select", "Slice")
"""Autograd nodes that pass a value unchanged, skipped to find the last real operation."""

LINEAR = ("Addmm", "Mm", "Linear", "Convolution")
"""Autograd nodes after which an output is a logit and not a probability (a sum may be a mean of sigmoids)."""

MOST_NODES = 10_000
"""Largest number of nodes examined in the autograd graph."""


class TorchPredictor:
    """A `torch.nn.Module` that maps (n, d) features to (n, q) or (n,) outputs."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self.name = type(module).__name__
        self._recurrent = any(isinstance(part, nn.RNNBase) for part in module.modules())
        self._mode: CopyMode | None = None
        """The mode of the last copy, to skip trials."""
        self._taken: torch.dtype | None = None
        """The dtype of inputs that the module last accepted."""
        _require_usable(module)

    @property
    def module(self) -> nn.Module:
        """The owner's module."""
        return self._module

    def predict(self, X: FloatArray) -> FloatArray:
        """The module's own answer."""
        with evaluation_mode(self.module), torch.no_grad():
            outputs = as_table(self._answer(X), len(X))
        return np.asarray(outputs.to(dtype=torch.float64, device="cpu").numpy())

    def predict_tensor(self, U: Tensor) -> Tensor:
        """The answers to float64 rows on the module's device, as float64 tensors there."""
        with evaluation_mode(self.module), torch.no_grad():
            outputs = self._in_own_dtype(lambda dtype: self._run(U.to(dtype, copy=True)))
            return as_table(outputs, len(U)).to(torch.float64)

    def snapshot(self, device: str) -> Callable[[Tensor], Tensor]:
        """A frozen copy for gradients: float64 in and out, and inside if the module allows it."""
        if self._mode is not None:
            return self._copy(self._mode, device)
        return UndecidedCopy(self.name, list(self._copies(device)))

    def describe(self, X: FloatArray) -> Description:
        """Dtypes and device are the module's; smoothness and the last operation come from an autograd
        graph."""
        known = Description(
            name=self.name,
            device=self._device,
            features=self._features,
            dtypes=tuple(str(dtype).removeprefix("torch.") for dtype in self._dtypes()),
            layers=self.layers,
            program=self.program,
        )
        if known.features not in (None, X.shape[1]):
            return known
        outputs = self._first_graph(X)
        assert self._mode is not None
        return replace(
            known,
            outputs=outputs.shape[1],
            has_float64_copy=self._mode.in_float64,
            smooth=is_smooth(outputs),
            ends_in_sigmoid=ends_in_sigmoid(outputs),
        )

    def layers(self) -> tuple[Layer, ...]:
        """The layers, if the module is a plain sequence of dense layers and common activations."""
        with evaluation_mode(self.module):
            return proved_layers(self.name, self._parts(), self._run)

    def program(self, features: int) -> Program:
        """The program for one row, and the arithmetic that it is computed in. From the layers if their types
        are exact; otherwise recorded, hooks included."""
        try:
            found = program_of(self._unfolded(), features)
        except UnsupportedError:
            return self._traced(features)
        return replace(found, arithmetic=self._arithmetic(None))

    def _unfolded(self) -> tuple[Layer, ...]:
        """A layer for each operation that is computed: `layers` may combine some."""
        return TorchPredictor.layers(self)

    def _traced(self, features: int) -> Program:
        with evaluation_mode(self.module):
            found = recorded_program(self.name, self._run, features, self._entry_dtypes()[0], self._device)
        return replace(found, arithmetic=self._arithmetic(found))

    def _arithmetic(self, traced: Program | None) -> Arithmetic | None:
        """The arithmetic of layers or of a traced program; None if it is not reliable."""
        dtypes, kind = self._dtypes(), torch.device(self._device).type
        with suppress(UnsupportedError):
            if traced is None:
                return arithmetic_of(dtypes, kind)
            return program_arithmetic(traced, dtypes, kind, recurrent=self._recurrent)
        return None

    def _parts(self) -> list[TorchOperation]:
        """The operations by the classes of the module's parts."""
        return list(parts_of(self.module))

    def _run(self, batch: Tensor) -> Any:
        return self.module(batch)

    def _frozen(self, dtype: torch.dtype | None, device: str) -> Callable[[Tensor], Any]:
        """A copy with frozen parameters, in `dtype` (None: its own)."""
        return frozen(self.module, dtype, device)

    def _tensors(self) -> Iterator[Tensor]:
        """The floating-point tensors of the module, which show dtype and device."""
        tensors = itertools.chain(self.module.parameters(), self.module.buffers())
        return (tensor for tensor in tensors if tensor.is_floating_point())

    @property
    def _device(self) -> str:
        return str(next((tensor.device for tensor in self._tensors()), "cpu"))

    def _dtypes(self) -> tuple[torch.dtype, ...]:
        return tuple(dict.fromkeys(tensor.dtype for tensor in self._tensors())) or (torch.float64,)

    def _entry_dtypes(self) -> list[torch.dtype]:
        """Possible dtypes of inputs, likeliest first."""
        return likeliest_first(self._dtypes(), self._taken)

    @property
    def _features(self) -> int | None:
        """Number of features, if the first layer shows it."""
        first: nn.Module | None = self._module
        while isinstance(first, nn.Sequential) and type(first).forward is nn.Sequential.forward:
            first = next(first.children(), None)
        return first.in_features if isinstance(first, nn.Linear) else None

    def _answer(self, X: FloatArray) -> Any:
        """The module's answer to `X`, in the first of its dtypes that it accepts."""
        rows, device = np.ascontiguousarray(X), self._device

        def run(dtype: torch.dtype) -> Any:  # the module may change its input, so it gets a copy
            if device == "cpu":
                return self._run(torch.tensor(rows, dtype=dtype))
            return self._run(torch.tensor(rows, device=device).to(dtype))  # a GPU converts faster

        return self._in_own_dtype(run)

    def _in_own_dtype(self, run: Callable[[torch.dtype], Any]) -> Any:
        """The result in the first accepted dtype of inputs, beginning with the last accepted one."""
        if self._taken is not None:
            with suppress(RuntimeError):
                return run(self._taken)
        outputs, self._taken = in_first_dtype(self._entry_dtypes(), run)
        return outputs

    def _copies(self, device: str) -> Iterator[FrozenCopy]:
        """One copy in every mode, best first; modes to which the module cannot be converted are left out."""
        for mode in MODES:
            try:
                yield self._copy(mode, device)
            except PredictorError:
                raise
            except Exception:  # the module converts its input itself; the last mode converts nothing
                if mode is MODES[-1]:
                    raise

    def _copy(self, mode: CopyMode, device: str) -> FrozenCopy:
        run = self._frozen(torch.float64 if mode.in_float64 else None, device)
        dtypes = [torch.float64] if mode.in_float64 else self._entry_dtypes()
        on_cuda = torch.device(device).type == "cuda"
        return FrozenCopy(run, mode, dtypes, plain_kernels=self._recurrent and on_cuda)

    def _first_graph(self, X: FloatArray) -> Tensor:
        """The values of a copy at `X` with their graph, in the best mode that works; the mode is
        remembered."""
        rows = torch.tensor(X, dtype=torch.float64)
        try:
            copied, outputs = first_that_runs(self.name, self._copies("cpu"), rows)
        except PredictorError:
            self.predict(X)  # a failure that the owner's own call would raise is reported unchanged
            raise
        self._mode = copied.mode
        return outputs


def _require_usable(module: nn.Module) -> None:
    lazy = (nn.UninitializedParameter, nn.UninitializedBuffer)
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if isinstance(tensor, lazy):
            raise PredictorError(f"{type(module).__name__}: {name} has no shape yet; run a batch through it.")
        if tensor.is_meta:
            raise PredictorError(
                f"{type(module).__name__}: {name} is on the meta device, where it has no values; give the "
                "module its weights (to_empty, then load_state_dict)."
            )
        if tensor.is_complex():
            raise PredictorError(
                f"{type(module).__name__}: {name} holds complex numbers, which dovetail cannot copy into "
                "float64; give a plain function of numpy batches that calls the module."
            )
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor.to(torch.float64)).all()):
            raise PredictorError(
                f"{type(module).__name__}: {name} holds NaN or infinity; train or load it again."
            )


@contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Inside, dropout does nothing, and normalisations use learned statistics."""
    with MODE:
        training = [part for part in module.modules() if part.training]
        for part in training:
            _set(part, False)
        try:
            yield
        finally:
            for part in training:
                _set(part, True)


def _set(part: nn.Module, training: bool) -> None:
    """Set the mode past `Module.__setattr__`, which is slow for many parts. Parts with a way of their own
    (TorchScript) are set by it."""
    if type(part).__setattr__ is nn.Module.__setattr__ and "training" in vars(part):
        vars(part)["training"] = training
    else:
        part.training = training


def is_smooth(outputs: Tensor) -> bool:
    """Whether second derivatives are useful: no operation on the way to `outputs` has a kink."""
    return not any(node.name().startswith(WITHOUT_CURVATURE) for node in _nodes(outputs))


def ends_in_sigmoid(outputs: Tensor) -> bool | None:
    """True for a sigmoid, False for a linear map, None if the last operation is neither."""
    last = _last_operation(outputs)
    if last.startswith("Sigmoid"):
        return True
    return False if last.startswith(LINEAR) else None


def _last_operation(outputs: Tensor) -> str:
    """The last real operation; the addition of a constant (a bias) is skipped."""
    for node in _nodes(outputs):
        name: str = node.name()
        if name.startswith("Add") and not name.startswith("Addmm"):
            varying = [source.name() for source, _ in node.next_functions if source is not None]
            return str(varying[0]) if len(varying) == 1 and varying[0].startswith(LINEAR) else name
        if not name.startswith(PASSING):
            return name
    return ""


def _nodes(outputs: Tensor) -> Iterator[Any]:
    waiting: list[Any] = [outputs.grad_fn]
    seen: set[Any] = set()
    while waiting and len(seen) < MOST_NODES:
        node = waiting.pop(0)
        if node is None or node in seen:
            continue
        seen.add(node)
        yield node
        waiting.extend(next_node for next_node, _ in node.next_functions)


DEVICES = ("cpu", "cuda")
"""Devices on which sums of products round as the standard says, unless configured otherwise."""


def arithmetic_of(dtypes: Iterable[torch.dtype], device: str) -> Arithmetic:
    """The arithmetic of the coarsest dtype on a kind of device ("cpu", "cuda"); an `UnsupportedError` says
    why there is none."""
    names = [str(dtype).removeprefix("torch.") for dtype in dtypes]
    unknown = [name for name in names if name not in FORMATS]
    if unknown:
        raise UnsupportedError(f"how {unknown[0]} rounds is not known, so no bound can be proved.")
    coarsest = max((FORMATS[name] for name in names), key=lambda kind: kind.roundoff)
    if device not in DEVICES or torch.is_autocast_enabled(device):
        reason = f"the network runs on {device}" + (" under autocast" if device in DEVICES else "")
    else:
        reason = "" if coarsest is FLOAT64 else _coarser_products()
    if reason:
        raise UnsupportedError(f"{reason}: how far it rounds is not known, so no bound can be proved.")
    return coarsest


def program_arithmetic(
    program: Program, dtypes: Iterable[torch.dtype], device: str, *, recurrent: bool
) -> Arithmetic:
    """The arithmetic of a program: of its coarsest dtype, if whole layers are reliable."""
    met = [getattr(torch, name) for name in sorted(program.formats)]
    found = arithmetic_of([*dtypes, *met], device)
    reason = "" if found is FLOAT64 else _coarser_layers(device, program.convolves, recurrent)
    if reason:
        raise UnsupportedError(f"{reason}: how far it rounds is not known, so no bound can be proved.")
    return found


def _coarser_layers(device: str, convolves: bool, recurrent: bool) -> str:
    """Why convolutions or recurrent layers may be coarser than sums of products; empty otherwise. On a GPU
    cuDNN may use transforms (Winograd, Fourier) and TF32, and NNPACK may do so on a CPU; oneDNN, which has
    precedence, computes plain products."""
    if device == "cuda":
        return "cuDNN computes whole layers by algorithms of its own" if convolves or recurrent else ""
    if convolves and torch._C._get_nnpack_enabled() and not torch._C._get_mkldnn_enabled():
        return "NNPACK computes convolutions by algorithms of its own"
    return _named_modes(getattr(torch.backends.mkldnn, part, None) for part in ("conv", "rnn"))


def _named_modes(backends: Iterable[object]) -> str:
    """Why backends may be coarser than float32, according to their settings; empty otherwise."""
    modes = {str(getattr(backend, "fp32_precision", "none")) for backend in backends}  # not in every version
    return "" if modes <= {"none", "ieee"} else "torch.backends allows products in less than float32"


def _coarser_products() -> str:
    """Why products may be coarser than their dtype; empty otherwise."""
    try:
        if torch.get_float32_matmul_precision() != "highest":
            return "torch.set_float32_matmul_precision allows products in less than float32"
    except RuntimeError:  # the two ways of torch to request this were mixed
        return "torch.backends allows products in less than float32"
    cpu, cuda = torch.backends.mkldnn, torch.backends.cuda
    return _named_modes((torch.backends, cpu, *(getattr(one, "matmul", None) for one in (cpu, cuda))))


class SkorchPredictor(TorchPredictor):
    """The net's current module, because training replaces it."""

    def __init__(self, net: Any) -> None:
        self._net = net
        super().__init__(self.module)
        self.name = f"{type(net).__name__} of {self.name}"

    @property
    def module(self) -> nn.Module:
        """The module of the net."""
        module = getattr(self._net, "module_", None)
        if not isinstance(module, nn.Module):
            raise PredictorError(
                f"{type(self._net).__name__} holds no module yet; call its fit (or initialize and "
                "load_params) first."
            )
        return module
