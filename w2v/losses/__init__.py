"""The losses: which output rows predict a word, and how their scores become a gradient."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from w2v.losses.gradient import check_gradient

__all__ = ["check_gradient"]

if not TYPE_CHECKING:  # as in w2v/__init__.py

    def __getattr__(name: str) -> Any:
        if name in __all__:
            from w2v.losses import gradient

            return getattr(gradient, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
