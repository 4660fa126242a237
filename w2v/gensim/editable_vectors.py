"""Add keys, change vectors, and give each key attributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from w2v.formats.header import ModelHeader
from w2v.formats.vector_file import as_floats
from w2v.vectors import keyed
from w2v.vectors.cosines import Floats, lengths, unit

REAL = np.float32

Key = str | int


class Removed:
    """An attribute that gensim 4 removed. Reading it raises AttributeError, which names the replacement."""

    def __init__(self, instead: str) -> None:
        self.instead = instead

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            return self
        raise AttributeError(f"the attribute {self.name} was removed in gensim 4: use {self.instead}")


class EditableVectors(keyed.KeyedVectors):
    """The part of KeyedVectors that adds and changes keys, vectors and attributes; see KeyedVectors."""

    # Programs edit these arrays, and reset the norms after a change, as with gensim.
    vectors: NDArray[Any] = np.zeros((0, 0), REAL)
    norms: Floats | None = None  # type: ignore[assignment]

    vocab = Removed("key_to_index, index_to_key, or get_vecattr(word, 'count')")
    index2word, index2entity = Removed("index_to_key"), Removed("index_to_key")
    vectors_norm = Removed("get_normed_vectors()")

    def __init__(
        self, vector_size: int, count: int = 0, dtype: DTypeLike = np.float32, mapfile_path: str | None = None
    ) -> None:
        self.vectors = np.zeros((count, vector_size), dtype)
        self.index_to_key: list[Any] = [None] * count
        self.key_to_index: dict[Any, int] = {}
        self.next_index = 0  # the row of the next add_vector, if that row is reserved
        self.norms = None
        self.expandos: dict[str, NDArray[Any]] = {}
        self.vectors_lockf: Floats = np.ones(1, REAL)
        self.mapfile_path = mapfile_path
        self.header, self.tensors = ModelHeader(), {}

    @property
    def vector_size(self) -> int:
        """The number of values of a vector. It can be set only before vectors are added."""
        return int(self.vectors.shape[1])

    @vector_size.setter
    def vector_size(self, size: int) -> None:
        if not len(self.vectors):
            self.vectors = np.zeros((0, size), self.vectors.dtype)

    @property
    def _words(self) -> list[Any]:
        return self.index_to_key

    def _set_keys(self, keys: list[Any]) -> None:
        self.index_to_key, self.key_to_index = keys, {key: row for row, key in enumerate(keys)}

    @property
    def counts(self) -> NDArray[np.int64] | None:
        counts = self._complete_attributes().get("count")
        return None if counts is None else counts.astype(np.int64)

    def __str__(self) -> str:
        return f"{type(self).__name__}<vector_size={self.vector_size}, {len(self)} keys>"

    __repr__ = object.__repr__

    # -- keys, vectors and attributes -----------------------------------------------------------------

    def __iter__(self) -> Iterator[Floats]:
        """Iterate over the vectors, not the keys: gensim's class has no __iter__, so Python iterates it by row."""
        return iter(self.vectors)

    def get_index(self, key: Any, default: int | None = None) -> int:
        """Return the row of a key, or `default` if it is unknown. An int that is not a key is a row.

        Raises:
            KeyError: The key is unknown, and there is no `default`.
        """
        row = self.row_of(key)
        if row is None:
            row = default
        if row is None:
            raise KeyError(f"Key '{key}' not present")
        return row

    def row_of(self, key: Any) -> int | None:
        """Return the row of a key, or None. An int that is not a key is a row, as in gensim."""
        row = super().row_of(key)
        if row is None and isinstance(key, int | np.integer) and 0 <= key < len(self):
            return int(key)
        return row

    has_index_for = keyed.KeyedVectors.is_known

    def get_vector(self, key: Key, norm: bool = False) -> Floats:
        stored: Floats = super()._look_up_vectors([key])[0]
        vector = unit(stored) if norm else stored
        vector.setflags(write=False)
        return vector

    def word_vec(self, *args: Any, **options: Any) -> Floats:
        """See get_vector."""
        return self.get_vector(*args, **options)

    @property
    def _overrides_get_vector(self) -> bool:
        """Whether a subclass or program replaced get_vector; then comparisons and searches call it, as in gensim."""
        return "get_vector" in vars(self) or type(self).get_vector is not EditableVectors.get_vector

    def _look_up_vectors(self, keys: Iterable[Any]) -> Floats:
        keys = list(keys)
        if keys and self._overrides_get_vector:
            return np.stack([self.get_vector(key) for key in keys])
        return super()._look_up_vectors(keys)

    def _vectors_of_keys(self, keys: Sequence[keyed.Key], norm: bool) -> Floats:
        if self._overrides_get_vector:
            return np.stack([self._vector(key, norm) for key in keys])
        return super()._vectors_of_keys(keys, norm)

    def _vector(self, key: keyed.Key, norm: bool) -> Floats:
        if isinstance(key, str | int | np.integer) and not norm:
            return self.get_vector(key)  # a get_vector of the program may lack the argument norm
        return super()._vector(key, norm)

    def get_mean_vector(
        self,
        keys: Sequence[Any],
        weights: Sequence[float] | NDArray[Any] | None = None,
        pre_normalize: bool = True,
        post_normalize: bool = False,
        ignore_missing: bool = True,
    ) -> Floats:
        if not len(keys):
            raise ValueError("cannot compute mean with no input")
        if ignore_missing and not any(isinstance(key, np.ndarray) or key in self for key in keys):
            return np.zeros(self.vector_size, self.vectors.dtype)
        return super().get_mean_vector(keys, weights, pre_normalize, post_normalize, ignore_missing)

    def _is_unknown_word(self, key: Any) -> bool:
        return isinstance(key, str | int | np.integer) and key not in self

    def add_vector(self, key: Key, vector: ArrayLike) -> int:
        """Put a vector into the next reserved row, or append it. Return its row."""
        row = self.next_index
        if row >= len(self) or self.index_to_key[row] is not None:
            self.add_vectors([key], [vector])
            self.next_index = len(self)
            return self.key_to_index[key]
        self.vectors[row] = vector
        self.index_to_key[row] = key
        self.key_to_index[key] = row
        self.norms = None
        self.next_index += 1
        return row

    def add_vectors(
        self, keys: Any, weights: Any, extras: Mapping[str, NDArray[Any]] | None = None, replace: bool = False
    ) -> None:
        """Append keys with vectors and the attributes `extras`. Change known keys only with `replace`."""
        if isinstance(keys, str | int | np.integer):
            keys, weights = [keys], np.reshape(weights, (1, -1))
        weights = as_floats(weights, words=keys, dtype=self.vectors.dtype)
        if weights.shape != (len(keys), self.vector_size):
            raise ValueError(
                f"weights of shape {weights.shape}: {len(keys)} keys need shape {(len(keys), self.vector_size)}"
            )
        extras = extras or {}
        new = np.array([key not in self.key_to_index for key in keys], bool)
        self.allocate_vecattrs(list(extras), [extra.dtype for extra in extras.values()])
        for position in np.flatnonzero(new).tolist():
            self.key_to_index[keys[position]] = len(self.index_to_key)
            self.index_to_key.append(keys[position])
        self.vectors = np.vstack([self.vectors, weights[new]])
        self.allocate_vecattrs()
        written = new | bool(replace)
        rows = [self.key_to_index[key] for key, is_written in zip(keys, written, strict=True) if is_written]
        self.vectors[rows] = weights[written]
        for name, extra in extras.items():
            self.expandos[name][rows] = extra[written]
        self.norms = None

    def __setitem__(self, keys: Any, weights: Any) -> None:
        self.add_vectors(keys, weights, replace=True)

    def allocate_vecattrs(self, attrs: Iterable[str] | None = None, types: Iterable[Any] | None = None) -> None:
        """Create arrays for attributes `attrs` of `types`, one value per key. Without arguments, extend all arrays.

        Raises:
            TypeError: An attribute already has another type.
        """
        if attrs is None or types is None:
            attrs, types = list(self.expandos), [array.dtype for array in self.expandos.values()]
        for name, kind in zip(attrs, types, strict=True):
            dtype = np.dtype(object if kind is str else kind)
            existing = self.expandos.get(name, np.zeros(0, dtype))
            if not np.issubdtype(dtype, existing.dtype):
                raise TypeError(
                    f"Can't allocate type {kind} for attribute {name}, conflicts with its existing type "
                    f"{existing.dtype}"
                )
            if len(existing) != len(self) or name not in self.expandos:
                self.expandos[name] = np.zeros(len(self), existing.dtype)
                self.expandos[name][: len(existing)] = existing[: len(self)]

    def set_vecattr(self, key: Key, attr: str, val: Any) -> None:
        self.allocate_vecattrs([attr], [type(val)])
        self.expandos[attr][self.get_index(key)] = val

    def get_vecattr(self, key: Key, attr: str) -> Any:
        return self.expandos[attr][self.get_index(key)]

    def sort_by_descending_frequency(self) -> None:
        """Sort the keys by the attribute "count", highest first. Keys of equal count are reversed, as in gensim."""
        if not len(self):
            return
        counts = self.expandos["count"].astype(np.int64)
        order = np.lexsort((-np.arange(len(counts)), -counts))
        self._set_keys([self.index_to_key[row] for row in order.tolist()])
        self.allocate_vecattrs()
        self.expandos = {name: array[order] for name, array in self.expandos.items()}
        if len(self.vectors):
            self.vectors = self.vectors[order]
        self.norms = None

    def _complete_attributes(self) -> dict[str, NDArray[Any]]:
        """Return the attributes with one value per key: a program may have replaced the keys but not the attributes."""
        return {name: array for name, array in self.expandos.items() if len(array) == len(self)}

    # -- lengths ------------------------------------------------------------------------------------

    def fill_norms(self, force: bool = False) -> None:
        if self.norms is None or force:
            self.norms = lengths(self.vectors)

    def get_normed_vectors(self) -> Floats:
        return unit(self.vectors)

    def unit_normalize_all(self) -> None:
        """Scale all vectors to length 1."""
        self.vectors = unit(self.vectors)
        self.fill_norms(force=True)

    def init_sims(self, replace: bool = False) -> None:
        if replace:
            self.unit_normalize_all()
        self.fill_norms()
