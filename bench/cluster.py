"""Several ranks: what they cost, and what they learn.

    python bench/cluster.py speed TEXT [--vector-size 100] [--threads 1] [--json FILE]
    python bench/cluster.py links [--ranks 2 4] [--gigabits 1 10] [--vector-size 100] [--json FILE]
    python bench/cluster.py quality TEXT [--pairs FILE ...] [--questions FILE] [--ranks 2 4] [--epochs 5] [--json FILE]

`speed` measures a rank on this machine, in processor time: training a word, and packing and unpacking a row for an
exchange. From these it computes, for 2 to 64 ranks, networks of 10 to 100 Gb/s and vocabularies of 100,000 to 10
million words, how many times one rank they are; nothing is sent. A round takes

    sending the rows of every round + max(training, sending the others) + packing,

    sending = 2 (n - 1) (latency + bytes / n / bandwidth)

as in a ring all-reduce, and an epoch of a billion words ends with all rows, during which nothing is trained. The goal
is 3.6 for 4 ranks at 10 Gb/s.

`links` checks the last line: ranks in network namespaces of this machine, each behind a link of this bandwidth (tc's
tbf; it adds no delay), sum messages of the size of a round, and look at them as often as they do while they train. It
needs root and Linux, and the processor must keep up with the links.

`quality` trains the text under mpiexec, with the changes of the ranks combined in several ways: as w2v does; their sum;
their mean; their sum divided by the square root of the number of ranks that have some; equal ones always averaged; by
the model combiner of GraphAny2Vec, for which each rank needs the changes of all others; and as w2v does, but with the
first n · 2^z rows exchanged after round r, with z the number of zeros at the end of r in binary, instead of slices.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from common import Text, machine, prepared, table, training_seconds
from numpy.typing import NDArray
from peers import BASE

import w2v
from w2v.system import memory
from w2v.training import distributed
from w2v.training.distributed import MAX_WORDS, Exchange, Flags, rows_of_round, words_of_round
from w2v.training.world import LOOK, World, join

RANKS, GIGABITS, VOCABULARIES = (2, 4, 8, 16, 32, 64), (10, 25, 100), (100_000, 1_000_000, 10_000_000)
LATENCY = 20e-6  # seconds, of a message
WORDS = 1_000_000_000  # of an epoch
GOAL = 3.6
COMBINERS = ("w2v", "sum", "root", "mean", "averaged where equal", "model combiner", "first rows")


# -- speed ----------------------------------------------------------------------------------


def packing_seconds(size: int, rounds: int = 40) -> float:
    """Processor seconds to pack and unpack a row, of matrices too large for the caches."""
    world: Any = SimpleNamespace(start_sum=lambda values, total: np.copyto(total, values), wait=lambda request: None)
    matrices = [(memory.aligned_rows(100_000, size)[:, :size], 1 / np.arange(1, 100_001)) for _ in range(2)]
    exchange = Exchange(world, matrices, 1, 1)
    random = np.random.default_rng(1)
    for rows, _ in matrices:
        rows[:] = random.random(rows.shape, np.float32)
    exchange.all_rows()
    taken = 0.0
    for number in range(rounds):
        for rows, _ in matrices:
            rows[random.integers(0, len(rows), 5000)] += 0.01
        started = time.process_time()
        exchange.begin(number, Flags())
        exchange.finish()
        taken += time.process_time() - started
    return taken / rounds / (2 * sum(map(len, rows_of_round(0, 100_000))))


def sending(ranks: int, gigabits: float, size: float) -> float:
    """Seconds to sum messages of `size` bytes in a ring, computed."""
    return 2 * (ranks - 1) * (LATENCY + size / ranks / (gigabits * 1e9 / 8))


def speedup(ranks: int, gigabits: float, vocabulary: int, word: float, row: float, size: int, threads: int) -> float:
    """How many times one rank so many are, computed; `word` and `row` are a thread's seconds for one."""

    def exchange(rows: int) -> float:
        return sending(ranks, gigabits, 4 * (size + 1) * rows)

    first, *others = (2 * len(each) for each in rows_of_round(0, vocabulary))
    words = words_of_round(WORDS // ranks, ranks)
    rounds = WORDS / ranks / (words * threads)
    sent = exchange(first) + max(words * word, exchange(sum(others)))
    a_round = sent + (first + sum(others)) * row / threads
    epoch = rounds * a_round + exchange(2 * vocabulary) + 2 * vocabulary * row / threads
    return WORDS * word / threads / epoch


def speed(options: argparse.Namespace) -> dict[str, Any]:
    settings = w2v.Settings(**{**BASE.as_dict(), "vector_size": options.vector_size, "workers": 1})
    with prepared(options.corpus, options.share, settings) as text:
        word = min(training_word(settings, text) for _ in range(options.repeats))
    row = min(packing_seconds(options.vector_size) for _ in range(options.repeats))
    print(f"Measured, {machine()}: a thread trains {1 / word:,.0f} words a second; {1e6 * row:.2f} µs to pack a row.\n")
    found = {}
    rows_of_table = []
    for vocabulary in VOCABULARIES:
        rows = 2 * sum(map(len, rows_of_round(0, vocabulary)))
        message = 4 * (options.vector_size + 1) * rows
        for gigabits in GIGABITS:
            speeds = [speedup(n, gigabits, vocabulary, word, row, options.vector_size, options.threads) for n in RANKS]
            found[f"{vocabulary} words, {gigabits} Gb/s"] = speeds
            cells = [f"{vocabulary:,}", f"{message / 1e6:.1f}", f"{message / (MAX_WORDS * options.threads):.0f}"]
            rows_of_table.append([*cells, f"{gigabits}", *(f"{each:.1f}" for each in speeds)])
    header = ["words", "MB per round", "bytes per trained word", "Gb/s", *(f"{n} ranks" for n in RANKS)]
    print(
        f"Computed, ranks of {options.threads} threads, an epoch of a billion words:\n\n{table(header, rows_of_table)}"
    )
    reached = found[f"{VOCABULARIES[0]} words, 10 Gb/s"][RANKS.index(4)]
    print(f"\n4 ranks at 10 Gb/s: {reached:.2f} times one, computed (goal {GOAL})")
    return {"seconds_a_word": word, "seconds_a_row": row, "computed": found}


def training_word(settings: w2v.Settings, text: Text) -> float:
    """Processor seconds to train a word."""
    return training_seconds(settings, text.vocabulary, text.store, time.process_time) / text.store.tokens


# -- links ----------------------------------------------------------------------------------

NETWORK = "10.77.0."
LAUNCHER = f"""#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1; shift
exec ip netns exec "rank${{host#{NETWORK}}}" sh -c "$*"
"""
OVER_TCP = {"UCX_TLS": "tcp,self", "FI_PROVIDER": "tcp", "MPIR_CVAR_NOLOCAL": "1"}  # not through shared memory


def links(options: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {}
    rows = []
    for gigabits in options.gigabits:
        for count in options.ranks:
            own = [sys.executable, str(Path(__file__).resolve()), "shape", "--vector-size", str(options.vector_size)]
            own += ["--ranks", str(count), "--gigabits", str(gigabits)]
            lines = subprocess.check_output(["unshare", "--net", "--mount", *own], text=True).splitlines()
            for size, seconds in map(json.loads, lines):
                expected = sending(count, gigabits, size)
                found[f"{count} ranks, {gigabits:g} Gb/s, {size} bytes"] = seconds
                times = [f"{1e3 * each:.1f}" for each in (expected, np.median(seconds), min(seconds))]
                rows.append([f"{count}", f"{gigabits:g}", f"{size / 1e6:.1f}", *times])
    print(f"{machine()}\n\n{table(['ranks', 'Gb/s', 'MB', 'computed ms', 'median ms', 'minimum ms'], rows)}")
    return found


def shape(options: argparse.Namespace) -> None:
    """In network and mount namespaces of its own: a namespace for each rank, its link, and the ranks."""
    (count,), (gigabits,) = options.ranks, options.gigabits
    hosts = [f"{NETWORK}{number}" for number in range(1, count + 1)]
    commands = ["mount -t tmpfs none /run", "ip link set lo up", "ip link add bridge type bridge"]
    commands += [f"ip address add {NETWORK}254/24 dev bridge", "ip link set bridge up"]
    for number, host in enumerate(hosts, 1):
        inside = f"ip -n rank{number}"
        commands += [
            f"ip netns add rank{number}",
            f"ip link add to{number} type veth peer name eth0 netns rank{number}",
        ]
        commands += [f"ip link set to{number} master bridge up", f"{inside} address add {host}/24 dev eth0"]
        commands += [f"{inside} link set eth0 up", f"{inside} link set lo up"]
        shaped = f"rate {gigabits}gbit burst 256kb latency 100ms"
        commands.append(f"ip netns exec rank{number} tc qdisc add dev eth0 root tbf {shaped}")
    for command in commands:
        subprocess.run(command.split(), check=True)
    with tempfile.TemporaryDirectory() as folder:
        launcher = Path(folder) / "launcher"
        launcher.write_text(LAUNCHER)
        launcher.chmod(0o700)
        mpiexec = [str(Path(sys.executable).with_name("mpiexec")), "-localhost", f"{NETWORK}254"]
        mpiexec += ["-launcher", "ssh", "-launcher-exec", str(launcher), "-hosts", ",".join(hosts), "-n", str(count)]
        own = [sys.executable, str(Path(__file__).resolve()), "time_sums", "--vector-size", str(options.vector_size)]
        subprocess.run([*mpiexec, *own], check=True, env=os.environ | OVER_TCP)


def time_sums(options: argparse.Namespace) -> None:
    """What each rank of `links` runs."""
    world = join()
    assert world
    with world:
        for vocabulary in VOCABULARIES:
            rows = 2 * sum(map(len, rows_of_round(0, vocabulary)))
            values = np.ones((options.vector_size + 1) * rows, np.float32)
            total, seconds = np.empty_like(values), []
            for _ in range(11):
                world.gather("")  # all begin together
                started = time.perf_counter()
                request = world.start_sum(values, total)
                while not request.Test():
                    time.sleep(LOOK)
                seconds.append(time.perf_counter() - started)
            if world.leads:
                print(json.dumps([values.nbytes, seconds[1:]]), flush=True)


# -- quality --------------------------------------------------------------------------------


def first_rows(number: int, rows: int, frequent: int = distributed.FREQUENT_ROWS) -> list[range]:
    """Instead of distributed.rows_of_round."""
    first, end = min(frequent, rows), min(frequent * (~number & number + 1), rows)
    return [range(first), range(first, end)]


def use(combiner: str, size: int) -> None:
    """Combine changes in another way than w2v does, in this process."""
    power = {"sum": 0.0, "root": 0.5, "mean": 1.0}.get(combiner)
    start_sum = World.start_sum

    def changes(message: NDArray[np.float32]) -> NDArray[np.float32]:
        rows = (len(message) - len(Flags._fields)) // (size + 1)
        return message[: rows * (size + 1)].reshape(rows, size + 1)

    def counted(self: World, values: NDArray[Any], total: NDArray[Any]) -> Any:
        if values.dtype == np.float32:
            changes(values)[:, -1] = changes(values)[:, :-1].any(axis=1)
        return start_sum(self, values, total)

    def divided(total: NDArray[np.float32], ranks: NDArray[np.float32], _: Any) -> NDArray[np.float32]:
        found: NDArray[np.float32] = np.divide(total, np.maximum(1, ranks) ** np.float32(power))
        return found

    def orthogonal(self: World, values: NDArray[Any], total: NDArray[Any]) -> Any:
        if values.dtype == np.float32:
            every = np.empty((self.size, len(values)), np.float32)
            self._comm.Allgather(values, every)
            found = np.zeros_like(changes(values)[:, :-1])
            for message in every:
                one = changes(message)[:, :-1]
                length = np.maximum((found**2).sum(axis=1, keepdims=True), 1e-30)
                found += one - (found * one).sum(axis=1, keepdims=True) / length * found
            total[:] = every.sum(axis=0)
            changes(total)[:] = np.column_stack([found, np.full(len(found), np.inf)])
            return self._comm.Ibarrier()
        return start_sum(self, values, total)

    if power is not None:
        World.start_sum, distributed.combined_change = counted, divided  # type: ignore[assignment, method-assign]
    elif combiner == "model combiner":
        World.start_sum = orthogonal  # type: ignore[method-assign]
    elif combiner == "averaged where equal":
        whole = distributed.combined_change
        distributed.combined_change = lambda total, squares, progress: whole(
            total, squares, np.full_like(progress, np.inf)
        )
    elif combiner == "first rows":
        distributed.rows_of_round = first_rows


def train_as_rank(options: argparse.Namespace) -> None:
    """What each rank of `quality` runs."""
    with join() or nullcontext() as world:
        use(options.combiner, options.vector_size)
        settings = {"vector_size": options.vector_size, "epochs": options.epochs, "seed": options.seed, "workers": 1}
        model = w2v.train(options.corpus, world=world, **settings)
        if world is None or world.leads:
            model.save(options.output)


def quality(options: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {}
    mpiexec = str(Path(sys.executable).with_name("mpiexec"))
    runs = [(1, "w2v"), *((count, combiner) for count in options.ranks for combiner in options.combiners)]
    for count, combiner in runs:
        for seed in range(1, options.seeds + 1):
            with tempfile.TemporaryDirectory() as folder:
                output = Path(folder) / "model.safetensors"
                own = [str(Path(__file__).resolve()), "train_as_rank", str(options.corpus), "--output", str(output)]
                own += ["--combiner", combiner, "--seed", str(seed), "--epochs", str(options.epochs)]
                own += ["--vector-size", str(options.vector_size)]
                subprocess.run([mpiexec, "-n", str(count), sys.executable, *own], check=True)
                vectors = w2v.load(output)
                scores = [w2v.word_pairs(vectors, path).spearman for path in options.pairs]
                if options.questions:
                    scores.append(w2v.analogies(vectors, options.questions).accuracy)
                found.setdefault(f"{count} {combiner}", []).append(scores)
    names = [path.stem for path in options.pairs] + ["analogies"] * bool(options.questions)
    rows = [
        [*label.split(" ", 1), *(f"{value:.3f}" for value in np.mean(scores, axis=0))]
        for label, scores in found.items()
    ]
    print(table(["ranks", "combiner", *names], rows))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for work in (speed, links, quality, train_as_rank, shape, time_sums):
        command = commands.add_parser(work.__name__)
        command.set_defaults(work=work)
        command.add_argument("--vector-size", type=int, default=100)
        command.add_argument("--json", type=Path)
        if work in (links, shape):
            command.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
            command.add_argument("--gigabits", type=float, nargs="+", default=[1, 10])
            continue
        if work is time_sums:
            continue
        command.add_argument("corpus", type=Path)
        command.add_argument("--epochs", type=int, default=5)
        if work is speed:
            command.add_argument("--share", type=float, default=1.0)
            command.add_argument("--threads", type=int, default=16)
            command.add_argument("--repeats", type=int, default=3)
        elif work is quality:
            command.add_argument("--pairs", type=Path, nargs="+", default=[])
            command.add_argument("--questions", type=Path)
            command.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
            command.add_argument("--combiners", nargs="+", choices=COMBINERS, default=COMBINERS)
            command.add_argument("--seeds", type=int, default=1)
        else:
            command.add_argument("--output", type=Path)
            command.add_argument("--combiner", choices=COMBINERS)
            command.add_argument("--seed", type=int)
    options = parser.parse_args()
    result = options.work(options)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
