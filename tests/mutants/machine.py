#!/usr/bin/env python3
"""Changes single lines of src at random places, and runs the tests that are for them: a change that
they pass is a test that is missing, a change that changes nothing, or code that nobody needs.

  tests/mutants/machine.py [-n COUNT] [-s SEED] [-m MINUTES] [-b SECONDS] [-k FILES] [PATCH ...]

COUNT changes (40) that build, evenly over the lines of functions; SEED (today's date) says which.
MINUTES: start none behind that (no limit). SECONDS: of CPU that a change's tests may take (60). -k:
only files whose path matches. PATCH: files as this leaves them in BUILD/mutants, tried again
instead. JOBS lanes (nproc), each a copy of the tree.

The tests of a change: of those that run its line, as a build with gcov tells, once for a tree
(BUILD/mutants/seen.json), unit tests, then those that name what the file defines, its room's
(ROOMS), and all others, quick ones first. Behind them those that name it and may run the line in a
process that is killed, of which gcov hears nothing. A test that does not end is one that fails.
What compiles to the same machine code is not counted.
"""
import argparse
import collections
import concurrent.futures
import datetime
import difflib
import functools
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")
JOBS = int(os.environ.get("JOBS", os.cpu_count()))
ENVIRON = dict(os.environ, BUILD="build", PATIENCE="5")

# ---- changes -------------------------------------------------------------------------------------

# Pattern and what takes its place, on code without comments and strings. The formatter puts blanks
# around operators of two operands, and none after those of one.
RULES = [
    ("relation", r"(?<= )(<|>|<=|>=|==|!=)(?= )",
     {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}),
    ("operator", r"(?<= )(\+|-|\*|/|%|<<|>>|\||&|\+=|-=)(?= )",
     {"+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "|": "&", "&": "|",
      "+=": "-=", "-=": "+="}),
    ("logic", r"(?<= )(&&|\|\|)(?= )", {"&&": "||", "||": "&&"}),
    ("bound", r"(?<= (?:<|>) )[a-z][\w.>-]*(?=[;,) ])(?! [*/%])", ["{} - 1", "{} + 1"]),
    ("bound", r"(?<= (?:<=|>=) )[a-z][\w.>-]*(?=[;,) ])(?! [*/%])", ["{} - 1", "{} + 1"]),
    ("constant", r"(?<![\w.])\d+(?![\w.])", ["({} + 1)", "({} - 1)"]),
    ("constant", r"\b(true|false)\b", {"true": "false", "false": "true"}),
    ("condition", r"(?<=\bif \().*(?=\) [^()]*[;{]$)|(?<=\bif \().*(?=\)$)", ["!({})"]),
    ("error check", r"^ +if \(.*\) (?:return|goto|break|continue)\b[^;]*;$", [";"]),
    ("error check", r"^ +DT_(?:TRY|GUARD)\((.*)\);$", ["(void)({});"]),
    ("statement",
     r"^ +(?:[*\w][\w.\[\]>*+-]* (?:[-+*/|&]?=) .*|[a-z_]\w*\(.*\)|[\w.\[\]>-]+(?:\+\+|--));$",
     [";"]),
    ("arguments", r"(?<=[(,] )?[a-z][\w.>-]*, [a-z][\w.>-]*(?=[,)])", ["swap"]),
]
# What makes no test fail: memory that is not given back is for `make asan`.
RELEASE = re.compile(r"(free|destroy|close|release)\w*\(")
MESSAGE = re.compile(
    r"\b(assert|dt_fail|dt__error|dt__warn|dt__info|dt_log\w*|static_assert|_Static_assert)\(")

Change = collections.namedtuple("Change", "path line kind before after")


def masked(text):
    """The text with comments, strings and characters blanked, line by line as long as before."""
    pattern = r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", "\0", m.group()), text, flags=re.S)


def code_lines(text):
    """Numbers of the lines of functions: the formatter has their braces in the first column."""
    inside, message, numbers = False, False, []
    for number, line in enumerate(masked(text).split("\n")):
        if line in "{}" and line:
            inside = line == "{"
        elif inside and line.strip("\0 {}") and not line.lstrip().startswith("#"):
            message = message or bool(MESSAGE.search(line))
            if not message:
                numbers.append(number)
            message = message and not line.endswith((";", "{"))
    return numbers


def alternatives(line, code, above):
    """What may become of a line; code is the line masked, above what stands over it."""
    found = []
    begins = above.rstrip("\0 ").endswith((";", "{", "}", ")", ":", "else"))
    for kind, pattern, make in RULES:
        if (kind in ("statement", "error check") and not begins
                or kind == "statement" and RELEASE.search(code)):
            continue
        for match in re.finditer(pattern, code):
            old = line[match.start():match.end()]
            indent = old[:len(old) - len(old.lstrip())]
            if isinstance(make, dict):
                new = [make[old]]
            elif make == ["swap"]:
                first, second = old.split(", ")
                new = [f"{second}, {first}"] if first != second else []
            elif indent and match.groups():
                new = [indent + make[0].format(line[match.start(1):match.end(1)])]
            else:
                new = [indent + form.format(old) for form in make]
            found += [(kind, line[:match.start()] + text + line[match.end():]) for text in new]
    return found


def draw(rng, places, texts):
    """An endless row of changes, each once: a line by chance, then a kind, then one of the kind."""
    seen = set()
    while len(seen) < len(places) * 20:
        path, number = rng.choice(places)
        line, code = texts[path].split("\n")[number], masked(texts[path]).split("\n")
        above = next(c for c in reversed(code[:number]) if c.strip("\0 "))
        found = alternatives(line, code[number], above)
        kinds = sorted({kind for kind, _ in found})
        if not kinds:
            continue
        kind = rng.choice(kinds)
        change = Change(path, number, kind, line,
                        rng.choice([new for k, new in found if k == kind]))
        if change not in seen:
            seen.add(change)
            yield change


def as_patch(change, text):
    after = text.split("\n")
    after[change.line] = change.after
    return "\n".join(difflib.unified_diff(text.split("\n"), after, "a/" + change.path,
                                          "b/" + change.path,
                                          lineterm="", n=1)) + "\n"


def from_patches(paths):
    """Changes of files that hold what as_patch printed."""
    for patch in paths:
        path = before = number = None
        for line in pathlib.Path(patch).read_text().split("\n"):
            if line.startswith("+++ b/"):
                path = line[6:]
            elif line.startswith("@@"):
                number = int(re.match(r"@@ -(\d+)", line).group(1)) - 1
            elif line.startswith("-") and not line.startswith("---"):
                before = line[1:]
            elif line.startswith("+"):
                yield Change(path, number, "patch", before, line[1:])
            elif line.startswith(" "):
                number += 1


# ---- processes -----------------------------------------------------------------------------------

def processes_of(mark):
    """Those that inherited the environment's MUTANT=mark."""
    wanted = f"MUTANT={mark}".encode()
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                yield int(entry.name)
        except OSError:
            pass


def run(command, place, limit, log, cpu_limit=resource.RLIM_INFINITY, **environ):
    """The exit code, None behind the limit; no process that it started stays. cpu_limit: of each of
    these."""
    mark = f"{os.getpid()}.{threading.get_ident()}.{time.monotonic_ns()}"
    with open(log, "wb") as out:
        limit_cpu = lambda: resource.setrlimit(resource.RLIMIT_CPU, (cpu_limit,) * 2)
        process = subprocess.Popen(command, cwd=place, env=dict(ENVIRON, MUTANT=mark, **environ),
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                   start_new_session=True,  # what is told to end tells its group
                                   preexec_fn=limit_cpu)
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in processes_of(mark):
            try:
                os.kill(pid, number)
            except OSError:
                pass
        if not list(processes_of(mark)):
            break
        time.sleep(1)
    process.wait()
    return code


def copy_tree(place):
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE,
                           check=True).stdout
    for name in names.decode().split("\0"):
        if name and (ROOT / name).exists():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name, follow_symlinks=False)


def run_test(place, name, log, **environ):
    """Whether it did not fail, and its seconds of CPU."""
    pattern, kind = "^" + re.sub(r"[^\w/]", ".", name) + "$", name.split("/")[0]
    code = run(["tests/run.sh", "-j", "1", "-k", pattern, kind], place, LIMIT[kind] * patience(),
               log, CPU_LIMIT,
               **environ)
    said = log.read_text(errors="replace")
    seconds = re.search(r"([\d.]+) s of CPU", said)
    passed = code == 0 or code is not None and " 0 failed, 1 skipped" in said
    return passed, float(seconds.group(1)) if seconds else 0


# ---- which lines a test runs ---------------------------------------------------------------------

class Seen:
    """For each file and line of src, the tests that run it, and the seconds of CPU of each."""

    def __init__(self, top, tests, kept):
        newest = max(f.stat().st_mtime for place in ("src", "include", "tests")
                     for f in (ROOT / place).rglob("*.*"))
        if not kept.exists() or kept.stat().st_mtime < newest:
            kept.write_text(json.dumps(self.measure(top / "seen", tests)))
        self.lines, self.seconds = json.loads(kept.read_text())
        self.tests = tests

    @staticmethod
    def measure(place, tests):
        copy_tree(place)
        lines, seconds = {}, {}
        if run(["make", f"-j{JOBS}", "SANITIZE=--coverage", "CFLAGS=-O1", "all", "tests"], place,
               3600, place / "log"):
            sys.exit((place / "log").read_text()[-2000:])
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            for name, (cpu, counts) in zip(tests,
                                           pool.map(lambda name: Seen.counts(place, name), tests)):
                seconds[name] = cpu
                for path, number, count in counts:
                    names = lines.setdefault(path, {}).setdefault(number, [])
                    if count and name not in names[-1:]:
                        names.append(name)
        return lines, seconds

    @staticmethod
    def counts(place, name):
        """Its seconds of CPU, and (file, line, how often), a line once for each object file and
        function."""
        own = place.with_name("counts-" + re.sub(r"\W", "-", name))
        own.mkdir()
        _, seconds = run_test(place, name, own / "log", GCOV_PREFIX=str(own),
                              GCOV_PREFIX_STRIP=str(len(place.parts) - 1))
        files = list(own.glob("build/**/*.gcda"))  # tests include sources, too
        for file in files:
            file.with_suffix(".gcno").symlink_to(place / file.relative_to(own).with_suffix(".gcno"))
        said = subprocess.run(["gcov", "-t", "-j", *map(str, files)], cwd=place,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False).stdout if files else b""
        shutil.rmtree(own)
        return seconds, [(file["file"], line["line_number"], line["count"])
                         for text in said.splitlines()
                         for file in json.loads(text)["files"] if file["file"].startswith("src/")
                         for line in file["lines"]]

    def by(self, change):
        """Tests for a change, those that run its line (or the nearest above that has code)
        first."""
        lines = self.lines.get(change.path, {})
        seen = next((lines[str(n)] for n in range(change.line + 1, 0, -1) if str(n) in lines), [])
        named = tests_of(change.path, self.tests)
        own = "unit/" + pathlib.Path(change.path).stem
        # it may run in processes that gcov does not hear of
        blind = not any(name[0] == "u" for name in seen)
        units = [name for name in named + seen if name[0] == "u"
                 and (blind or name in seen or name == own)]
        jobs = [name for name in named if name[0] != "u"]
        quick = sorted((name for name in seen if name[0] != "u"),
                       key=lambda name: self.seconds[name])
        return list(dict.fromkeys(units + [name for name in jobs if name in seen] + quick + jobs))


# ---- which tests ---------------------------------------------------------------------------------

# Behind the tests that name what a file defines: those of its room, quick ones first.
ROOMS = {
    "base": "unit/file unit/memory unit/error unit/rng unit/number unit/lock core/cli core/wrong",
    "config": "unit/config core/cli e2e/setting core/wrong",
    "hdf5": "unit/hdf5 unit/checkpoint unit/golden unit/shard e2e/formats e2e/damage",
    "data": "unit/source unit/csv unit/hdf5 unit/sparse unit/rows unit/loader unit/formats"
            " unit/shard core/csv e2e/tables e2e/formats e2e/sparse e2e/uneven",
    "model": "unit/layers unit/network unit/gradient unit/optimizer unit/golden unit/bf16"
             " unit/sparse unit/convolution e2e/layers e2e/bits e2e/precision",
    "comm": "unit/wire unit/slots mpi/test_gather-np3 mpi/test_runs-np3 mpi/test_world-np3"
            " mpi/test_exchange-np3 mpi/test_rows-np6 mpi/test_async-np2_shared_2000_1000"
            " mpi/test_async-np4_rows_4000_10000 mpi/test_async-np4_bf16_1000_1000"
            " mpi/test_exchange-np5 e2e/watchdog e2e/evaluator e2e/async e2e/bits",
    "state": "unit/checkpoint unit/save unit/export unit/writer unit/golden e2e/best e2e/resume"
             " e2e/overlap e2e/export",
    "report": "unit/report unit/history e2e/report core/compare e2e/top",
    "predict": "unit/predictor e2e/predict e2e/onnx e2e/serve e2e/serve_wide",
    "train": "unit/train unit/gradient unit/lr_test mpi/test_runs-np3 e2e/curve e2e/resume"
             " e2e/eval e2e/early_stop e2e/best core/stop e2e/tune_lr e2e/async e2e/wide e2e/local"
             " e2e/wire e2e/evaluator e2e/continue",
    "cli": "core/cli e2e/manual e2e/setting e2e/predict e2e/eval e2e/report core/wrong",
}
# Seconds, on a quiet machine.
LIMIT = {"unit": 20, "mpi": 60, "mpi_long": 100, "core": 120, "e2e": 180}
# Seconds of one process: a loop without end ends there, however little of a core it gets.
CPU_LIMIT = 20


def tests_of(path, known):
    """Tests for a file of src: unit and MPI tests that name most of what it defines (a name that
    few tests have says more), those that the list of planted bugs names for it, scripts that are
    called as the file is, its room's."""
    defined = set(re.findall(r"^(?!static|#|typedef)\w[\w ]*[ *](dt_\w+)\(",
                             (ROOT / path).read_text(), re.M))
    named = {name: defined & words for name, words in test_words().items()}
    spread = collections.Counter(word for words in named.values() for word in words)
    score = {name: sum(1 / spread[word] for word in words) for name, words in named.items()
             if words}
    best = sorted(score, key=lambda name: -score[name])[:6]
    stem = re.sub(r"^cmd_|_train$", "", pathlib.Path(path).stem)
    room = ROOMS[path.split("/")[1]].split()
    names = ["unit/" + stem] + [n for n in best if n[0] == "u"] + [n for n in room if n[0] == "u"]
    names += [n for b in planted_tests(path) for n in known if re.match(re.escape(b) + "(-|$)", n)]
    names += [n for n in known if re.fullmatch(f"(core|e2e)/({stem}|{stem.split('_')[0]})", n)]
    names += [n for b in best if b[0] == "m" for n in known if re.match(b + "-np[23]", n)] + room
    return [n for n in dict.fromkeys(names) if n in known]


@functools.lru_cache(None)
def planted_tests(path):
    """Tests of the planted bugs (tests/mutants/bugs) that change the file."""
    lines = [line for line in (ROOT / "tests/mutants/bugs").read_text().split("\n") if line
             and line[0] != "#"]
    names, text = [], (ROOT / path).read_bytes()
    for (_, place, *tests), change in zip(map(str.split, lines[::2]), lines[1::2]):
        if path.startswith(place) and subprocess.run(["sed", change.strip()], input=text,
                                                     stdout=subprocess.PIPE,
                                                     check=True).stdout != text:
            names += tests
    return sorted(dict.fromkeys(names), key=lambda name: "ume".index(name[0]))


@functools.lru_cache(None)
def test_words():
    files = [*ROOT.glob("tests/unit/test_*.c"), *ROOT.glob("tests/mpi/test_*.c")]
    return {f"unit/{f.stem[5:]}" if f.parent.name == "unit" else f"mpi/{f.stem}":
            set(re.findall(r"\bdt_\w+", f.read_text())) for f in files}


def patience():
    """Times as long as on a quiet machine."""
    return min(max(os.getloadavg()[0] / os.cpu_count(), 1), 6)


# ---- a lane --------------------------------------------------------------------------------------

class Lane:
    """A copy of the tree, built, in which one change at a time is tried."""

    def __init__(self, top, number, seen):
        self.place, self.seen, self.log = top / f"lane{number}", seen, top / f"log{number}"
        copy_tree(self.place)
        if self.make(f"-j{JOBS}", "all"):
            sys.exit(self.log.read_text()[-2000:])
        self.objects = {o: self.code(o) for o in (self.place / "build/src").rglob("*.o")}

    def make(self, *goals):
        return run(["make", *goals], self.place, 1200, self.log)

    def code(self, path):
        """What the compiler made of a file, without what debuggers read."""
        bare = self.log.with_suffix(".o")
        subprocess.run(["objcopy", "--strip-debug", str(path), str(bare)], check=True)
        return hashlib.sha1(bare.read_bytes()).digest()

    def attempt(self, change, seconds):
        """What became of the change: a verdict, and a text."""
        file = self.place / change.path
        text = file.read_text()
        lines = text.split("\n")
        if lines[change.line] != change.before:
            return "stale", "no such line"
        lines[change.line] = change.after
        start = time.time() - 1
        file.write_text("\n".join(lines))
        try:
            if self.make("all"):
                return "no build", ""
            if all(self.code(o) == code for o, code in self.objects.items()
                   if o.stat().st_mtime >= start):
                return "equivalent", "the same machine code"
            return self.judge(change, seconds)
        finally:
            file.write_text(text)

    def judge(self, change, seconds):
        names, ran, left = self.seen.by(change), [], seconds
        for name in names:
            if left < 0:
                break
            program = "build/tests/" + re.sub(r"-np.*", "", name.replace("unit/", "unit/test_"))
            if name[0] != "e" and self.make(program):
                return "no build", name
            passed, cpu = run_test(self.place, name, self.log)
            if not passed:
                return "caught", f"by {name}"
            left -= cpu
            ran.append(name)
        spent = f"{len(ran)} of {len(names)} tests, {seconds - left:.0f} s"
        return "SURVIVED", f"{spent}: {' '.join(ran)}"


# ---- all of it -----------------------------------------------------------------------------------

def sources():
    return sorted(f for f in (ROOT / "src").rglob("*.[ch]"))


def main():
    options = argparse.ArgumentParser(usage=__doc__)
    options.add_argument("-n", type=int, default=40)
    options.add_argument("-s", type=int, default=int(datetime.date.today().strftime("%Y%m%d")))
    options.add_argument("-m", type=float, default=1e9)
    options.add_argument("-b", type=float, default=60)
    options.add_argument("-k", default=".")
    options.add_argument("patch", nargs="*")
    given = options.parse_args()
    end = time.monotonic() + 60 * given.m
    tests = subprocess.run(["tests/run.sh", "-l", *LIMIT], cwd=ROOT, env=ENVIRON,
                           stdout=subprocess.PIPE, check=True).stdout.decode().split()
    texts = {str(f.relative_to(ROOT)): f.read_text() for f in sources()}
    places = [(name, number) for name, text in texts.items() if re.search(given.k, name)
              for number in code_lines(text)]
    changes = (from_patches(given.patch) if given.patch
               else draw(random.Random(given.s), places, texts))
    counts, survivors, lock = collections.Counter(), [], threading.Lock()

    def lane(top, number, seen):
        copy = Lane(top, number, seen)
        while time.monotonic() < end:
            with lock:
                if counts["tried"] - counts["not counted"] >= given.n and not given.patch:
                    return
                change = next(changes, None)
                if not change:
                    return
                counts["tried"] += 1
            verdict, text = copy.attempt(change, given.b)
            with lock:
                counts[verdict] += 1
                counts["not counted"] += verdict not in ("caught", "SURVIVED")
                if verdict == "SURVIVED":
                    survivors.append(change)
                print(f"{change.path}:{change.line + 1}: {change.kind}: "
                      f"{change.before.strip()}  -->  "
                      f"{change.after.strip()}\n    {verdict} {text}", flush=True)

    out = BUILD / "mutants"
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix="lanes.") as top:
        seen = Seen(pathlib.Path(top), tests, out / "seen.json")
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            for done in [pool.submit(lane, pathlib.Path(top), n, seen) for n in range(JOBS)]:
                done.result()
    for patch in out.glob("*.patch"):
        patch.unlink()
    for number, change in enumerate(survivors):
        (out / f"{number + 1}.patch").write_text(as_patch(change, texts[change.path]))
    caught, judged = counts["caught"], counts["caught"] + counts["SURVIVED"]
    print(f"seed {given.s}: {caught} of {judged} caught ({100 * caught // max(judged, 1)} %);"
          f" besides, {counts['no build']} do not build, {counts['equivalent']} change no machine"
          f" code; survivors: {out}")


main()
