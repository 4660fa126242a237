"""Used and available memory, on systems that report it and on others; aligned arrays and mapped files."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from w2v._errors import W2VError
from w2v._formats.bfloat16 import bfloat16
from w2v._system import memory

FILES = {
    "/proc/self/status": "VmHWM:\t  300 kB\nVmRSS:\t  200 kB\nVmSize:\t  900 kB\n",
    "/proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:    5000 kB\n",
}
# Limits of control groups (cgroups) of versions 1 and 2.
CGROUPS_1 = {
    "/proc/self/cgroup": "4:cpu,cpuacct:/\n3:memory:/box/inner\n",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2**63 - 4096}",
    "/sys/fs/cgroup/memory/box/memory.limit_in_bytes": f"{1200 << 10}",
}
CGROUPS_2 = {
    "/proc/self/cgroup": "0::/user/box\n",
    "/sys/fs/cgroup/user/box/memory.max": "max",
    "/sys/fs/cgroup/user/memory.max": f"{700 << 10}\n",
}
# The use of an enclosing cgroup. Other processes in it use 300 kB, and cached files that the system can drop use 60 kB.
USE_1 = {
    "/sys/fs/cgroup/memory/box/memory.usage_in_bytes": f"{560 << 10}\n",
    "/sys/fs/cgroup/memory/box/memory.stat": f"inactive_file 0\ntotal_inactive_file {60 << 10}\n",
}
USE_2 = {
    "/sys/fs/cgroup/user/memory.current": f"{560 << 10}\n",
    "/sys/fs/cgroup/user/memory.stat": f"anon 5\ninactive_file {60 << 10}\nactive_file 9\n",
}


@pytest.mark.parametrize(
    ("files", "address_space", "available"),  # in kB
    [
        (FILES, -1, 5000),
        (FILES | CGROUPS_1, -1, 1000),
        (FILES | CGROUPS_1 | USE_1, -1, 700),
        (FILES | CGROUPS_2, -1, 500),
        (FILES | CGROUPS_2 | USE_2, -1, 200),
        (FILES, 4000, 3100),
    ],
    ids=["machine", "cgroups 1", "shared cgroups 1", "cgroups 2", "shared cgroups 2", "address space"],
)
def test_available_memory_is_the_smallest_limit(
    files: dict[str, str], address_space: int, available: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: Path) -> str:
        if str(path) not in files:
            raise FileNotFoundError
        return files[str(path)]

    monkeypatch.setattr(Path, "read_text", read)
    resource = pytest.importorskip("resource")
    limit = resource.RLIM_INFINITY if address_space < 0 else address_space << 10
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert memory.peak_resident_bytes() == 300 << 10
    assert memory.resident_bytes() == 200 << 10
    assert memory.available() == available << 10


TRAIN = """
import sys
import w2v
from w2v._system import memory
lists = [[f"w{i}" for i in range(start, start + 20)] for start in range(0, int(sys.argv[1]), 20)]
estimates = []
def report(progress):
    if progress.phase == "train" and not estimates:
        estimates.append(progress.memory)
options = {"storage": sys.argv[2]}
if len(sys.argv) > 3:
    options |= {"checkpoint": sys.argv[3], "checkpoint_every": "1epoch"}
model = w2v.train(lists, vector_size=400, negative=2, min_count=1, epochs=2, progress=report, **options)
view = model.views["words"]
arrays = model.wv.vectors.nbytes + view.inputs.nbytes + view.outputs.nbytes
print(*estimates, memory.peak_resident_bytes(), arrays)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the peak memory in Linux's /proc")
@pytest.mark.parametrize("storage", ["float32", "bf16"])
@pytest.mark.parametrize("checkpoints", [False, True], ids=["", "with checkpoints"])
def test_the_memory_estimate_is_close_to_the_peak_of_training(tmp_path: Path, storage: str, checkpoints: bool) -> None:
    """Before a checkpoint is written, the matrices are copied. How much of this is reused depends on the allocator."""
    found = []
    for words in "4000", "16000":
        command = [sys.executable, "-c", TRAIN, words, storage, *([str(tmp_path / words)] if checkpoints else [])]
        found.append([*map(int, subprocess.run(command, capture_output=True, check=True).stdout.split())])
    estimate, peak, arrays = (large - small for small, large in zip(*found, strict=True))
    assert peak < 1.1 * estimate
    assert (0.55 if checkpoints else 0.9) * estimate < arrays


@pytest.mark.parametrize("content", [None, "VmPeak: 5 kB\n"])
def test_memory_is_estimated_if_the_system_does_not_report_it(
    content: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: Path) -> str:
        if content is None or "cgroup" in str(path):
            raise FileNotFoundError
        return content

    monkeypatch.setattr(Path, "read_text", read)
    assert 1e6 < memory.resident_bytes() == memory.peak_resident_bytes() < 1e12
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert memory.available() == installed - memory.resident_bytes()


@pytest.mark.parametrize("dtype", [np.dtype(np.float32), bfloat16()], ids=str)
def test_rows_fill_whole_cache_lines(dtype: np.dtype[Any]) -> None:
    per_line = memory.CACHE_LINE // dtype.itemsize
    for columns in (1, per_line, per_line + 1, 300):
        matrix = memory.aligned_rows(5, columns, dtype)
        assert matrix.shape == (5, -(-columns // per_line) * per_line)
        assert matrix.dtype == dtype
        assert matrix.ctypes.data % memory.CACHE_LINE == matrix.strides[0] % memory.CACHE_LINE == 0
        assert not matrix.any()


def test_impossible_allocations_are_refused() -> None:
    assert memory.empty((0, 3)).shape == (0, 3)
    for allocate in memory.empty, memory.zeros:
        message = rf"^no memory for an array of {4 * 2**60 / 1e6:,.0f} MB, shape \({1 << 40}, {1 << 20}\)$"
        with pytest.raises(W2VError, match=message):
            allocate((1 << 40, 1 << 20))


def test_needed_memory_is_compared_with_the_available_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "resident_bytes", lambda: 2_000_000_000)
    monkeypatch.setattr(memory, "available", lambda: 500_000_000)
    assert memory.check(500_000_000, "training", "lower it") == (2_500_000_000, 2_500_000_000)
    assert memory.check(1_000_000, "training", "lower it") == (2_001_000_000, 2_500_000_000)
    assert memory.check(700_000_000, "training", "lower it", ignore=True) == (2_700_000_000, 2_500_000_000)
    message = r"^training needs about 2,700 MB of memory, but only 2,500 MB are available: lower it$"
    with pytest.raises(W2VError, match=message):
        memory.check(700_000_000, "training", "lower it")
    with pytest.raises(W2VError):
        memory.check(500_000_001, "training", "lower it")


def test_a_truncated_file_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10_000)
    with path.open("rb") as file:
        mapped = memory.MappedFile(file)
    with mapped:
        assert len(mapped) == 10_000
        assert not mapped.is_truncated
        os.truncate(path, 20_000)
        assert not mapped.is_truncated
        os.truncate(path, 9_999)
        assert mapped.is_truncated
        with pytest.raises(TypeError):
            mapped[0] = 1  # it is read-only
