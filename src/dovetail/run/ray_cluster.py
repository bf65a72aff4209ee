"""Ray: workers on the cores and GPUs of one machine or of several. Only this module imports Ray.

Ray rather than joblib or Dask: Ray's actors keep their data from call to call, Ray places actors on a free
core or GPU, and a call to an actor takes two milliseconds. If no Ray cluster is running, dovetail starts one
on 127.0.0.1, without dashboard and usage statistics, and stops it at the end. A cluster that dovetail did
not start keeps running.
"""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

from dovetail.core.errors import MissingDependencyError, OptionError
from dovetail.run.budget import Budget
from dovetail.run.processes import Desk, Recipe, RemoteWorkers, WorkerLost, pickled
from dovetail.version import __version__

try:
    import ray
except ImportError:  # imported only if a cluster is used
    ray = None

LOCAL, FOUND = "local", "auto"
KNOCK_SECONDS = 5.0
"""For a machine to answer at all; Ray itself would try for a minute."""
PROBE_SECONDS = 60.0
"""For a process on the cluster to start and import dovetail."""
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
"""While our Ray starts: no statistics are sent, and no warning is given about unused GPUs."""
LOOPBACK = "127.0.0.1"
"""With exactly this address Ray accepts no connections from other machines."""
LONGEST_FOLDER = 35
"""Number of characters: socket names have at most 107, and Ray's own part takes about 70."""


@contextmanager
def ray_cluster(where: object, workers: int) -> Iterator[RayCluster]:
    """A cluster with room for this number of workers; it ends afterwards if it was started here."""
    if ray is None:
        raise MissingDependencyError("cluster= needs Ray: pip install ray.")
    started = not ray.is_initialized()
    with ExitStack() as until_the_end:
        if started:
            _start(where, workers, until_the_end)
        else:
            _require_same_address(where)
        cluster = RayCluster(workers, own=started and where == LOCAL)
        cluster.require_room()
        if not cluster.own:
            cluster.probe()
        yield cluster


class RayCluster:
    """See `Cluster`."""

    def __init__(self, workers: int, *, own: bool) -> None:
        self.workers, self.own = workers, own
        self._cpus = int(ray.cluster_resources().get("CPU", 0))

    @property
    def description(self) -> str:
        """A description for the log."""
        whose = "started here, ended with the solve" if self.own else _address()
        return f"Ray {ray.__version__} ({whose}), {self.workers} of {self._cpus} CPUs"

    def require_room(self) -> None:
        """Ray would wait for ever if there are too few CPUs."""
        if self.workers > self._cpus:
            raise OptionError(
                f"n_jobs is {self.workers}, and the cluster has {self._cpus} CPUs; give n_jobs={self._cpus} "
                "or less, or add machines to it."
            )

    def probe(self) -> None:
        """Raise an error if the cluster has another version of dovetail."""
        asked = ray.remote(_version).options(num_cpus=1, max_retries=0).remote()
        try:
            found = ray.get(asked, timeout=PROBE_SECONDS)
        except ray.exceptions.GetTimeoutError:
            raise OptionError(
                f"the cluster at {_address()} has no free CPU (nothing began in {PROBE_SECONDS:g} s); end "
                f"other programs there, or add machines to it."
            ) from None
        except ray.exceptions.RayError as reason:
            raise OptionError(
                f"the cluster at {_address()} cannot run dovetail ({_last_line(reason)}); install dovetail "
                f"{__version__} on its machines."
            ) from None
        if found != __version__:
            raise OptionError(
                f"the cluster at {_address()} has dovetail {found}, and this process {__version__}; install "
                "the same."
            )

    def hire(self, recipes: Sequence[Sequence[Recipe]], *, on_gpu: bool, budget: Budget) -> RemoteWorkers:
        """Actors."""
        lines = [partial(_RayLine, list(mine), on_gpu) for mine in recipes]
        return RemoteWorkers(lines, [len(mine) for mine in recipes], budget)


class _RayLine:
    def __init__(self, recipes: list[Recipe], on_gpu: bool) -> None:
        self._recipes = recipes
        options = {"num_cpus": 1, "num_gpus": 1 if on_gpu else 0, "max_restarts": 0}
        with _actor_death_as_lost():
            self._actor = ray.remote(Desk).options(**options, scheduling_strategy="SPREAD").remote()
        self._reply: Any = None

    def begin(self) -> None:
        self._reply = self._actor.make.remote(pickled(self._recipes, ray.cloudpickle.dumps))

    def send(self, letter: bytes) -> None:
        with _actor_death_as_lost():
            self._reply = self._actor.answer.remote(letter)

    def receive(self, seconds: float) -> bytes | None:
        with _actor_death_as_lost():
            ready, _ = ray.wait([self._reply], timeout=seconds)
            reply: bytes | None = ray.get(ready[0]) if ready else None
        return reply

    def end(self) -> None:
        with suppress(Exception):
            ray.kill(self._actor)


@contextmanager
def _actor_death_as_lost() -> Iterator[None]:
    try:
        yield
    except ray.exceptions.RayError as reason:
        raise WorkerLost(_last_line(reason)) from None


def _version() -> str:
    from dovetail.version import __version__ as there

    return there


def _start(where: object, workers: int, until_the_end: ExitStack) -> None:
    if where is ray:
        raise OptionError(
            'cluster is ray, which is not started; call ray.init() first, or give cluster="local".'
        )
    assert isinstance(where, str)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    with _process_restored():
        if where == LOCAL:
            folder = until_the_end.enter_context(_folder())
            until_the_end.callback(ray.shutdown)
            with _loopback_address():
                ray.init(
                    num_cpus=workers, include_dashboard=False, _node_ip_address=LOOPBACK, _temp_dir=folder,
                    **quiet,
                )  # fmt: skip
            return
        if where != FOUND:
            _require_listener(where)
        until_the_end.callback(ray.shutdown)
        try:
            ray.init(address=where, **quiet)
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as reason:
            if "ersion mismatch" in str(reason):
                said = " ".join(str(reason).split())
                raise OptionError(
                    f"cluster {where!r} does not match this process: {said} Install the same Ray and Python."
                ) from None
            raise _no_ray_error(where, reason) from None


@contextmanager
def _loopback_address() -> Iterator[None]:
    """Keep the address 127.0.0.1, which Ray on Linux replaces by a public one unless clusters are switched
    off."""
    constants = ray._private.ray_constants
    before = constants.ENABLE_RAY_CLUSTER
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


@contextmanager
def _folder() -> Iterator[str | None]:
    """Folder for logs and sockets; Ray's own choice if the names would become too long."""
    if len(tempfile.gettempdir()) > LONGEST_FOLDER - len("/ray-xxxxxxxx"):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        yield folder


def _no_ray_error(where: str, reason: BaseException) -> OptionError:
    return OptionError(
        f"cluster {where!r}: no Ray answers there ({_last_line(reason)}); start one with `ray start --head` "
        'and give its address ("host:6379"), or give cluster="local". A cluster with tokens needs '
        "RAY_AUTH_MODE=token and its token in this process as well."
    )


def _require_listener(address: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "/" in address:
        raise OptionError(
            f'cluster is {address!r}; give "local", "auto", the address of a running Ray ("host:6379"), or '
            "the module ray after ray.init()."
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), KNOCK_SECONDS).close()
    except (OSError, OverflowError) as reason:
        raise _no_ray_error(address, reason) from None


def _require_same_address(where: object) -> None:
    """Refuse an address other than that of the Ray this process is connected to."""
    if where is ray or where in (LOCAL, FOUND) or where == _address():
        return
    raise OptionError(
        f"cluster is {where!r}, but this process is connected to the Ray "
        f"of {_address()} already; give that, or call "
        "ray.shutdown() first."
    )


def _address() -> str:
    return str(ray.get_runtime_context().gcs_address)


@contextmanager
def _process_restored() -> Iterator[None]:
    """Restore the SIGTERM handler that Ray replaces, and the environment that its children read."""
    main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM) if main else None
    before = {name: os.environ.get(name) for name in QUIET}
    os.environ.update(QUIET)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        if handler is not None:
            signal.signal(signal.SIGTERM, handler)


def _last_line(reason: BaseException) -> str:
    lines = str(reason).strip().splitlines()
    return lines[-1] if lines else type(reason).__name__
