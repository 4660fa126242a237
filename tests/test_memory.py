"""How much memory there is, where the system tells and where it does not."""

import os
from pathlib import Path

import pytest

from w2v import memory

FILES = {
    "/proc/self/status": "VmHWM:\t  300 kB\nVmRSS:\t  200 kB\n",
    "/proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:    5000 kB\n",
}
VERSION_1 = {
    "/proc/self/cgroup": "4:cpu,cpuacct:/\n3:memory:/box/inner\n",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2**63 - 4096}",
    "/sys/fs/cgroup/memory/box/memory.limit_in_bytes": f"{1200 << 10}",
}
VERSION_2 = {
    "/proc/self/cgroup": "0::/user/box\n",
    "/sys/fs/cgroup/user/box/memory.max": "max",
    "/sys/fs/cgroup/user/memory.max": f"{700 << 10}\n",
}


@pytest.mark.parametrize(
    ("files", "available"),
    [(FILES, 5000), (FILES | VERSION_1, 1000), (FILES | VERSION_2, 500)],
    ids=["machine", "version 1", "version 2"],
)
def test_the_smallest_limit_counts(files: dict[str, str], available: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: Path) -> str:
        if str(path) not in files:
            raise FileNotFoundError
        return files[str(path)]

    monkeypatch.setattr(Path, "read_text", read)
    assert memory.peak() == 300 << 10
    assert memory.held() == 200 << 10
    assert memory.available() == available << 10


@pytest.mark.parametrize("content", [None, "VmPeak: 5 kB\n"])
def test_a_system_that_does_not_tell(content: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: Path) -> str:
        if content is None or "cgroup" in str(path):
            raise FileNotFoundError
        return content

    monkeypatch.setattr(Path, "read_text", read)
    assert 1e6 < memory.held() == memory.peak() < 1e12
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert memory.available() == installed - memory.held()
