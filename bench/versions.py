"""Is this version as fast as another? Both train in turn, in pieces of about a second.

    python bench/versions.py TEXT OTHER [--python OTHER/.venv/bin/python] [--kernel numba] [--share 0.05]
        [--repeats 40] [--json FILE]

OTHER is a checkout of another version, with its extensions built. Each version runs in a process that has read the text
and waits for the settings of a configuration. The two train alternately, on one thread, so that a busy machine slows
both alike. The ratios are processor seconds, new / old: a median below 1 means that the new version is faster.
Compiling (--kernel numba) is not counted.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

from common import BENCH, alternate, benchmark_parser, report_results, round_ratios, summarise
from peers import BASE, CONFIGURATIONS

from w2v._losses.registry import KERNELS

NAMES = ("sg-ns-300", "sg-ns-100", "sg-hs-300", "cbow-ns-300", "cbow-ns-100", "cbow-hs-300",
         "sg-subwords-100", "cbow-subwords-100")  # fmt: skip
# Each version runs this program with its own modules.
WORKER = """
import json, sys, time
from dataclasses import replace
from pathlib import Path
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/bench"]
from common import prepared, training_seconds
from peers import BASE
with prepared(Path(sys.argv[2]), float(sys.argv[3]), BASE) as text:
    print("ready", flush=True)
    for line in sys.stdin:
        settings = replace(BASE, **json.loads(line), workers=1, kernel=sys.argv[4])
        print(training_seconds(settings, text.vocabulary, text.store, time.process_time), flush=True)
"""


class Version:
    """A process of one version, which trains on request."""

    def __init__(self, python: str, root: Path, corpus: Path, share: float, kernel: str) -> None:
        command = [python, "-c", WORKER, str(root.resolve()), str(corpus.resolve()), str(share), kernel]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
        self._answer()

    def seconds(self, name: str) -> float:
        """Train one configuration; return the processor seconds.

        The process gets the settings that differ from BASE, so that an older version need not know the configuration.
        """
        assert self._process.stdin
        base = BASE.as_dict(computed=False)
        settings = CONFIGURATIONS[name].as_dict(computed=False)
        changed = {key: value for key, value in settings.items() if value != base.get(key)}
        self._process.stdin.write(json.dumps(changed) + "\n")
        self._process.stdin.flush()
        return float(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            sys.exit("one version failed; its message is above")
        return line


def main() -> None:
    parser = benchmark_parser(__doc__, repeats=40, corpus=True)
    parser.set_defaults(share=0.05)
    parser.add_argument("other", type=Path)
    parser.add_argument("--python", help="Python of the other version [OTHER/.venv/bin/python]")
    parser.add_argument("--kernel", choices=KERNELS, default=KERNELS[0], help="kernel of both versions [%(default)s]")
    options = parser.parse_args()
    python = options.python or str(options.other / ".venv/bin/python")
    new = Version(sys.executable, BENCH.parent, options.corpus, options.share, options.kernel)
    old = Version(python, options.other, options.corpus, options.share, options.kernel)
    ratios = {}
    for name in NAMES:
        times = alternate({"old": partial(old.seconds, name), "new": partial(new.seconds, name)}, options.repeats)
        ratios[name] = summarise(round_ratios(times["new"], times["old"]))
    report_results(options, "Versions", "One thread. Processor seconds of training, new / old.", ratios=ratios)


if __name__ == "__main__":
    main()
