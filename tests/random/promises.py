"""What is promised of every configuration: the same bits, the same digits, one line of error. Each
promise is a function of a Case; it raises Failure. What timing decides is left out: the order of
async's updates, and the step at which an evaluator of its own stops a run."""
import json
import math
import os
import re
import shutil
import signal

from program import Failure


class Refused(Exception):
    """A key that the first run was without does not go with the others."""


class Case:
    """A configuration that runs, its first run, and its draws, the same each time."""

    def __init__(self, program, rows, config, rng, alone):
        self.program, self.rows, self.config = program, rows, config
        self.rng, self.alone = rng, alone
        asks = config.get("train.mode") == "async"
        self.is_async = asks and config.get("train.staleness") != "0" and not alone
        self.may_stop_anywhere = (config.get("eval.dedicated") == "yes"
                                  and config.get("eval.patience", "0") != "0")
        self.first = self.program.train(*self.at(1))

    def at(self, np):
        """(np, configuration): that of as few ranks has neither asynchrony nor an evaluator of its
        own."""
        if self.is_async:
            np = max(np, 2)
        config = dict(self.config)
        if np < 3:
            config.pop("eval.dedicated", None)
        if np < 2:
            config.pop("train.mode", None)
        return np, config

    def train(self, np, hosts=None, directory=None, **more):
        """At other ranks. Keys that the first run had to be without may be refused here."""
        np, config = self.at(np)
        result = self.program.train(np, dict(config, **more), hosts, directory)
        added = config.keys() - self.at(1)[1].keys()
        if result.code == 2 and any(keys_named(line, added) for line in result.errors):
            expect_one_line(result)
            raise Refused
        return result

    def evaluates(self):
        return bool(self.first.records("eval"))


def expect(what, kind, text):
    if not what:
        raise Failure(kind, text)


def expect_one_line(result, codes=(1, 2)):
    expect(result.code in codes, f"exit code {result.code}", result.err)
    expect(len(result.errors) == 1, f"{len(result.errors)} error lines", result.err)


def expect_end(case, result):
    """It has come to its end, and says what is so of any run."""
    expect(result.code == 0 and not result.errors, f"exit code {result.code}", result.err)
    final = result.final()
    expect(final["status"] in ("completed", "early_stopped"), "status", str(final))
    if case.is_async:
        counts = [final[key] for key in ("gradients_sent", "gradients_applied", "step")]
        expect(len(set(counts)) == 1, "gradients lost", str(counts))
    return final


def expect_same(case, result, any_order=False):
    """As the first run, to the bit."""
    final, want = expect_end(case, result), case.first.final()
    if case.is_async or case.may_stop_anywhere:
        return
    expect(final["step"] == want["step"], "step", f"{final['step']}, the first run {want['step']}")
    if not any_order:
        expect(final["params_crc32c"] == want["params_crc32c"], "bits",
               f"{final['params_crc32c']}, the first run {want['params_crc32c']}")


# ---- refusals ------------------------------------------------------------------------------------

def refused(case):
    """What does not begin, or comes to no number, ends with one line, at any number of ranks."""
    expect_one_line(case.first)
    if case.alone or case.rng.random() < 0.7:
        return
    _, config = case.at(1)
    again = case.program.train(3, config)
    expect(again.code == case.first.code, f"exit code {again.code} at np 3",
           f"{case.first.err}\n{again.err}")
    expect_one_line(again)


# ---- training ------------------------------------------------------------------------------------

def any_order(case):
    """The sum that MPI makes, of which only a run of the same ranks has the same bits."""
    return case.config.get("train.exchange") == "reduce"


def ranks(case):
    expect_same(case, case.train(case.rng.choice([2, 3, 3, 5])), any_order(case))


def hosts(case):
    """Ranks that share no memory. A number of groups that counts hosts is that of the first run."""
    where = "A" + "".join(case.rng.choice("AB" if case.rng.random() < 0.6 else "ABC")
                          for _ in range(case.rng.randint(2, 4)))
    groups = {"train.groups": case.config.get("train.groups", "0").replace("0", "1")}
    result = case.train(len(where), where, **groups)
    unknown_rows = case.config.get("train.lazy") == "yes" and (
        case.is_async or case.config.get("train.exchange") == "node")
    # split layers are evaluated by workers of the bank's host
    nobody_evaluates = "A" not in where[1:]
    if result.code == 2 and (unknown_rows and "train.lazy=yes" in result.err or
                             nobody_evaluates and "eval.dedicated=yes" in result.err):
        return expect_one_line(result)
    expect_same(case, result, any_order(case))


def later(case):
    """Stopped or killed, and gone on with by other ranks."""
    start, then = case.rng.choice([1, 1, 3]), case.rng.choice([1, 2, 3])
    if "train.mode" in case.config and not case.alone:
        start, then = 3, max(then, 2)  # a run keeps its mode
    how, last = case.rng.choice([signal.SIGUSR1, signal.SIGKILL]), case.first.final()["step"]
    step = case.rng.randint(min(last, 1), max(last // 2, 1))
    if any_order(case):
        start = then = 1  # the same ranks
    np, config = case.at(1 if case.alone else start)
    config.pop("eval.dedicated", None)
    slowly = dict(config,
                  **{"run.checkpoint_steps": "1", "run.keep": "0", "test.slow_rank": str(np // 2),
                             "test.slow_secs": "0.05"})
    result = case.program.interrupted(np, slowly, how, step)
    if how == signal.SIGUSR1:
        expect(result.code in (0, 75), f"exit code {result.code} of a stop", result.err)
    expect_same(case, case.train(1 if case.alone else then, directory=result.directory))


def fed_back(case):
    """config.ini repeats the run."""
    program, directory = case.program, case.program.new_directory()
    np, _ = case.at(1)
    command = program.command(np, None,
                              [f"{case.first.directory}/config.ini", f"run.dir={directory}"])
    expect_same(case, program.end(program.start(command), directory))


def from_weights(case):
    """A new run from another one's weights."""
    _, config = case.at(1)
    if case.is_async:
        return
    config["run.init"] = case.first.directory
    one, three = case.program.train(1, config), case.program.train(1 if case.alone else 3, config)
    for result in (one, three):
        expect(result.code == one.code, "exit codes", f"{one.err}\n{result.err}")
    if one.code:
        return expect_one_line(one)
    crcs = [result.final()["params_crc32c"] for result in (one, three)]
    expect(any_order(case) or crcs[0] == crcs[1], "bits", str(crcs))


# ---- models --------------------------------------------------------------------------------------

def evaluated(case):
    """(model, the run's own evaluation of it): the last one, or the best."""
    evals = {record["step"]: record for record in case.first.records("eval")}
    path = case.rng.choice([case.first.directory, f"{case.first.directory}/ckpt/latest.h5"])
    result = case.program.other("eval", path)
    expect(result.code == 0 and not result.errors, f"exit code {result.code}", result.err)
    said = json.loads(result.out)
    expect(said["step"] in evals, "step of no evaluation", f"{said} not in {evals}")
    return path, said, evals[said["step"]]


def measured(case):
    """`dtrain eval` has the digits of the run."""
    if not case.evaluates():
        return
    _, said, own = evaluated(case)
    keys = sorted((said.keys() & own.keys()) - {"secs", "wall_secs", "kind"})
    expect({"rows", "loss"} <= set(keys), "nothing measured", str(said))
    for key in keys:
        expect(said[key] == own[key], f"other {key}", f"{said}\nthe run's own: {own}")
    for name, values in said.get("sets", {}).items():
        recorded = [record for record in case.first.records("eval", name)
                    if record["step"] == said["step"]]
        expect(recorded, f"no evaluation of {name}", str(said))
        for key in values.keys() & recorded[-1].keys():
            expect(values[key] == recorded[-1][key], f"other {key} of {name}",
                   f"{said}\nthe run's own: {recorded}")


def predicted(case):
    """One answer a row of what is held out, and as many right ones as eval counts; the same rows on
    standard input, in any form, have the same answers."""
    if (not case.evaluates() or case.config.get("eval.batches", "0") != "0"
        or case.config.get("eval.weighted") == "yes"):
        return
    path, _, own = evaluated(case)
    if own["loss"] is None:
        return  # it has diverged: an answer beyond floats is an error of its row
    result = case.program.other("predict", path, "predict.held_out=yes", "predict.target=yes")
    expect(result.code == 0 and not result.errors, f"exit code {result.code}", result.err)
    answers = [json.loads(line) for line in result.out.splitlines()]
    expect(len(answers) == own["rows"], "rows", f"{len(answers)} answers, {own['rows']} rows")
    if case.config.get("model.task") == "multilabel":
        told = [(p > 0.5) == (t > 0.5) for a in answers
                for p, t in zip(numbers_of(a), as_list(a["target"]))]
        near = sum(abs(p - 0.5) < 1e-6 for a in answers for p in numbers_of(a))
        off = abs(sum(told) / len(told) - own["accuracy"])
        expect(off < 1e-12 + near / len(told), "accuracy",
               f"{sum(told)} of {len(told)} right, eval has {own}")
    elif "accuracy" in own:
        right = sum(a["class"] == a["target"] for a in answers)
        expect(abs(right / own["rows"] - own["accuracy"]) < 1e-12, "accuracy",
               f"{right} right, eval has {own}")
    else:
        check_values(answers, own, middle_of(case.config))
    if "data.eval" in case.config:
        by_hand(case, path)


def as_list(value):
    return value if isinstance(value, list) else [value]


def numbers_of(answer):
    return as_list(answer.get("value", answer.get("values", answer.get("probabilities"))))


def middle_of(config):
    """Which of a target's values counts, and how many it has."""
    if config.get("train.loss") != "quantile":
        return 0, 1
    levels = [float(level) for level in config.get("train.quantiles", "0.05,0.5,0.95").split(",")]
    return min(range(len(levels)), key=lambda q: abs(levels[q] - 0.5)), len(levels)


def check_values(answers, own, middle):
    """Printed values have the digits of a float: their error is 1e-6 of them at most."""
    told = [(v, t) for a in answers
            for v, t in zip(numbers_of(a)[middle[0]::middle[1]], as_list(a["target"]))]
    rmse = math.sqrt(sum((v - t) ** 2 for v, t in told) / len(told))
    slack = 1e-5 * max(max(abs(v), abs(t)) for v, t in told) + 1e-5 * rmse + 1e-30
    expect(abs(rmse - own["rmse"]) <= slack, "rmse",
           f"{rmse} of predictions, eval has {own['rmse']}")


def by_hand(case, path):
    keys = [f"{key}={case.config[key]}" for key in ("data.eval", "data.eval_labels")
            if key in case.config]
    want = case.program.other("predict", path, *keys)
    expect(want.code == 0, f"exit code {want.code}", want.err)
    for form, text in case.rows.by_hand.items():
        file = f"{case.program.directory}/{form}"
        with open(file, "wb") as out:
            out.write(text)
        said = case.program.other("predict", path, given=text, text=file)
        expect(said.code == 0, f"exit code {said.code} of {form}", said.err)
        expect(said.out == want.out, f"answers to {form}", f"{said.out[:600]}\n{want.out[:600]}")


def looked_at(case):
    """Commands that read what there is end well, or with a line that says why not."""
    first, out = case.first.directory, case.program.directory
    commands = [["inspect", first], ["inspect", case.rng.choice(case.rows.files)],
                ["report", first, f"{out}/page.html"],
                ["compare", first], ["export", first, f"{out}/model.onnx"]]
    for command in case.rng.sample(commands, 2):
        result = case.program.other(*command)
        if result.code:
            expect_one_line(result)
            expect(command[0] in ("export", "inspect"), f"exit code of {command[0]}", result.err)
        else:
            expect(not result.errors, "an error line", result.err)


TRAINING = [ranks, ranks, hosts, later, later]
ALONE = [later, from_weights]
CHEAP = [fed_back, measured, predicted, looked_at]


def chosen(rng, alone, hosts_library):
    """The promises that a seed looks at."""
    training = [p for p in (ALONE if alone else TRAINING + [from_weights]) if p is not hosts
                or hosts_library]
    return [rng.choice(training)] + [promise for promise in CHEAP if rng.random() < 0.4]


def keys_named(line, config):
    return [key for key in config if re.search(rf"(?<![\w.]){re.escape(key)}(?![\w.])", line)]


def clean(case):
    """Runs but the first."""
    for name in os.listdir(case.program.directory):
        path = f"{case.program.directory}/{name}"
        if name.startswith("run-") and path != case.first.directory:
            shutil.rmtree(path, ignore_errors=True)
