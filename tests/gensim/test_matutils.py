"""gensim.matutils, compared with gensim's own functions."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from tests.helpers import import_gensim
from w2v.gensim import matutils

theirs = import_gensim("gensim.matutils")


@pytest.mark.parametrize("norm", ["l1", "l2", "unique"])
@pytest.mark.parametrize("vector", [np.array([3.0, 0, -4], np.float32), np.array([1, 2]), np.zeros(3)])
def test_unitvec_matches_gensim(norm: Any, vector: np.ndarray) -> None:
    found, expected = (module.unitvec(vector, norm, return_norm=True) for module in (matutils, theirs))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)
    assert found[0].dtype == expected[0].dtype
    assert found[1] == pytest.approx(expected[1])
    np.testing.assert_array_equal(matutils.unitvec(vector, norm), found[0])
    with pytest.raises(ValueError, match="supported norm"):
        matutils.unitvec(vector, "l3")  # type: ignore[arg-type]


def test_sparse_vectors_are_divided_as_by_gensim(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(0, 3.0), (2, 4.0)]
    assert theirs.unitvec(pairs) == matutils.unitvec(pairs) == [(0, pytest.approx(0.6)), (2, pytest.approx(0.8))]
    np.testing.assert_allclose(matutils.unitvec(csr_matrix([[3.0, 0, 4]])).toarray(), [[0.6, 0, 0.8]])
    monkeypatch.setattr(matutils, "has_gensim", lambda: False)
    with pytest.raises(ValueError, match=r"no matutils\.unitvec of type list, only word vectors"):
        matutils.unitvec(pairs)


@pytest.mark.parametrize("options", [{}, {"topn": 2}, {"topn": 2, "reverse": True}, {"topn": 9}, {"topn": 0}])
def test_argsort_matches_gensim(options: dict[str, Any]) -> None:
    values = [3.0, 1, 2, 5, 4]
    assert list(matutils.argsort(values, **options)) == list(theirs.argsort(values, **options))


def test_zeros_aligned_are_aligned() -> None:
    several = [matutils.zeros_aligned(rows, np.float64) for rows in range(1, 30)]
    assert {zeros.ctypes.data % 128 for zeros in several} == {0}
    assert [zeros.shape for zeros in several] == [(rows,) for rows in range(1, 30)]
    assert matutils.zeros_aligned((3, 5), np.float32, order="F").flags.f_contiguous
    zeros = matutils.zeros_aligned((3, 5), np.float32, align=256)
    assert (zeros.shape, zeros.dtype, zeros.any(), zeros.ctypes.data % 256) == ((3, 5), np.float32, False, 0)
