#!/usr/bin/env python3
"""Draws configurations at random and holds each to what is promised of all; cuts down what fails.

    main.py [--seed FIRST] [--count N] [--seconds S] [--alone]
        FIRST, FIRST + 1, ...; --alone: one process each
    main.py --rows DIRECTORY --seed SEED
        that seed's data, for commands of a failure

BUILD: build directory. PATIENCE: how much longer than usual things may take.
"""
import argparse
import collections
import contextlib
import glob
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

import promises
import rows
import settings
from program import PATIENCE, Failure, Program

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
DTRAIN = os.path.join(BUILD, "dtrain")
ATTEMPTS = 12       # of a configuration to run, each with one refused key less
SECONDS_TO_CUT = 40 * PATIENCE  # for the fewest keys


def rng_of(seed, what):
    return random.Random(f"{seed} {what}")


def hosts_library(directory):
    """A library that makes one machine look like several hosts, or None without a compiler."""
    library = f"{directory}/hosts.so"
    compile_it = [os.environ.get("MPICC", "mpicc"), "-O1", "-fno-builtin", "-shared", "-fPIC", "-o",
                  library,
                  f"{ROOT}/tests/e2e/delay.c", "-ldl"]
    if not shutil.which(compile_it[0]):
        return None
    subprocess.run(compile_it, check=True)
    return library


class Seed:
    def __init__(self, seed, top, known, library, alone):
        self.seed, self.alone, self.library = seed, alone, library
        self.directory = f"{top}/{seed}"
        self.refusals = []
        self.rows = rows.make(rng_of(seed, "rows"), f"{self.directory}/rows", DTRAIN)
        self.config = settings.draw(rng_of(seed, "settings"), self.rows, known)
        self.promises = promises.chosen(rng_of(seed, "promises"), alone, library)

    def case(self, config, name):
        program = Program(DTRAIN, self.directory, self.library)
        for directory in glob.glob(f"{self.directory}/run-*"):
            shutil.rmtree(directory)
        self.log = program.log
        return promises.Case(program, self.rows, config, rng_of(self.seed, name), self.alone)

    def look_at(self, config, name):
        """One promise of a configuration, from the start. Returns the case."""
        case = self.case(config, name)
        if case.first.code:
            promises.refused(case)
            return case
        promises.expect_end(case, case.first)
        for promise in self.promises:
            if name in (promise.__name__, "all"):
                del case.program.log[1:]
                case.rng = rng_of(self.seed, promise.__name__)
                self.now = promise.__name__
                with contextlib.suppress(promises.Refused):
                    promise(case)
                promises.clean(case)
        return case

    def run(self):
        """The names of the promises that were kept, or None if nothing of it runs."""
        rng = rng_of(self.seed, "attempts")
        for _ in range(ATTEMPTS):
            self.now = "start"
            case = self.look_at(self.config, "all")
            if case.first.code == 0:
                return [promise.__name__ for promise in self.promises]
            line = case.first.errors[0]
            if not self.give_way(rng, line, line in self.refusals):
                break
            self.refusals.append(line)
        return None

    def give_way(self, rng, line, again):
        """Changes what an error line names, or another key. False: nothing is left to change."""
        if "the loss of" in line or "not finite" in line:
            self.config.update({"train.lr": "0.00001", "data.scale": "0.01"})
            return not again
        # Bits are of a number of replicas, by default that of the workers.
        free = [key for key in self.config if key not in {*self.rows.keys, "run.replicas"}]
        named = [key for key in promises.keys_named(line, self.config) if key in free]
        if not free or (again and not named):
            return False
        del self.config[rng.choice(named or free)]
        return True

    def fails(self, config, name, kind):
        try:
            self.look_at(config, name)
        except Failure as failure:
            return failure.kind == kind
        return False

    def cut_down(self, name, kind):
        """Takes out keys, many at a time, then fewer, as long as the same fails without them."""
        deadline, many = time.monotonic() + SECONDS_TO_CUT, len(self.config) // 2
        while many and time.monotonic() < deadline:
            keys = [key for key in self.config if key not in ("data.train", "run.replicas")]
            for out in (keys[i:i + many] for i in range(0, len(keys), many)):
                less = {key: value for key, value in self.config.items() if key not in out}
                if time.monotonic() < deadline and self.fails(less, name, kind):
                    self.config = less
            many //= 2

    def tell(self, failure):
        name = self.now
        self.cut_down(name, failure.kind)
        try:
            self.look_at(self.config, name)
            print("(it does not fail each time)")
        except Failure as again:
            failure = again
        place = f"/tmp/dtrain-random-{self.seed}"
        print(f"FAIL: seed {self.seed}, {name}: {failure.kind}\n{failure.text}")
        print("Commands that show it:")
        print(f"python3 tests/random/main.py --rows {place}/rows --seed {self.seed}")
        if self.library and any(self.library in line for line in self.log):
            print(f"mpicc -O1 -fno-builtin -shared -fPIC -o {place}/hosts.so tests/e2e/delay.c"
                  " -ldl")
        for line in self.log:
            line = line.replace(self.library or "\0", f"{place}/hosts.so")
            print(line.replace(self.directory, place))
        sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1 << 60)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--rows")
    arguments = parser.parse_args()
    if arguments.rows:
        rows.make(rng_of(arguments.seed, "rows"), arguments.rows, DTRAIN)
        return 0
    known, begin = settings.options(DTRAIN), time.monotonic()
    kept, failed = collections.Counter(), 0
    with tempfile.TemporaryDirectory(prefix="dtrain-random.") as top:
        library = None if arguments.alone else hosts_library(top)
        for number in range(arguments.seed, arguments.seed + arguments.count):
            if time.monotonic() - begin > arguments.seconds:
                break
            if arguments.verbose:
                print(f"{time.monotonic() - begin:.1f} s: seed {number}", flush=True)
            seed = Seed(number, top, known, library, arguments.alone)
            try:
                kept.update(seed.run() or ["none of it runs"])
                kept["seeds"] += 1
                if arguments.verbose:
                    print("\n".join(seed.refusals))
            except Failure as failure:
                failed += 1
                seed.tell(failure)
            shutil.rmtree(seed.directory, ignore_errors=True)
    took = time.monotonic() - begin
    print(f"{kept.pop('seeds', 0)} seeds passed, {failed} failed, in {took:.0f} s;",
          ", ".join(f"{name} {count}" for name, count in sorted(kept.items())))
    return failed > 0


sys.exit(main())
