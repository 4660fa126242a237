from typing import final

from typing_extensions import Buffer

def end_on_bus_error() -> None: ...

@final
class Guard:
    def __new__(cls, memory: Buffer, zeros: bool) -> Guard: ...
    @property
    def cut(self) -> bool: ...
