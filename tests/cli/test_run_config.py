"""The notice of `w2v train` about a long run."""

from typing import Any

import pytest

from w2v.cli.run_config import LongRunNotice
from w2v.losses.registry import Settings
from w2v.progress import Progress

CHECKPOINT = "with --checkpoint DIR, a run can be resumed after Ctrl-C"


@pytest.mark.parametrize(
    ("settings", "resumable", "advice"),
    [
        ({}, True, ""),
        ({}, False, f"; {CHECKPOINT}"),
        ({"loss": "mos"}, True, "; --sampled-mixtures is quicker"),
        ({"loss": "mos", "sampled_mixtures": True}, True, "; the losses ns, nce, sampled are quicker"),
        ({"loss": "hs"}, False, f"; the losses ns, nce, sampled are quicker; {CHECKPOINT}"),
    ],
)
def test_long_run_is_announced_once(
    settings: dict[str, Any], resumable: bool, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    received: list[Progress] = []
    notice = LongRunNotice(received.append, Settings(**settings).in_effect(), resumable)
    # At one word a second, 4,320 words take 72 minutes. The notice waits for the first 5 seconds of training.
    reports = [Progress("read", 10, 100_000, "bytes", 1)]
    reports += [Progress("train", done, 4320, "words", 1) for done in (0, 4, 6, 10)]
    for report in reports:
        notice(report)
        line = f"w2v: at this speed, training takes about 72 minutes{advice}\n"
        assert capsys.readouterr().err == (line if report.done == 6 else "")
    assert received == reports


def test_short_run_is_not_announced(capsys: pytest.CaptureFixture[str]) -> None:
    just_below_ten_minutes = Progress("train", 6, 590, "words", 1)
    LongRunNotice(lambda _: None, Settings(loss="mos").in_effect(), False)(just_below_ten_minutes)
    assert capsys.readouterr().err == ""
