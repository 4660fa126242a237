"""How long work reports its progress."""

from collections.abc import Callable

# progress(phase, done, total or None)
Progress = Callable[[str, int, int | None], None]
