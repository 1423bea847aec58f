"""Tiny data sets of all kinds, by seed: files in a directory, and what a configuration must say of
them."""
import csv
import glob
import gzip
import io
import os
import struct
import subprocess

NAMES = ["a", "b", "x1", "bill length", "size, mm", 'the "x"', "größe", "f", "ID", "2nd", "x=y",
         "per cent %", ""]
TEXTS = ["red", "green", "blue", "light blue", "a,b", 'so "said"', "grün", "x;y", "it's", "0x", "-"]
GAPS = ["", "NA", "NaN", "null", "?"]


class Rows:
    """keys: of the configuration; likely: values of keys that mean something here alone; shape: (h,
    w, c) or None; by_hand: texts that `dtrain predict` reads from standard input, each the held-out
    rows; files: of all kinds."""

    def __init__(self):
        self.keys, self.likely, self.shape, self.by_hand, self.files = {}, {}, None, {}, []


def number(rng):
    return f"{rng.gauss(0, 1) * rng.choice([1, 1, 1, 30]):.4g}"


def write(path, data, packed):
    """One file, as bytes; packed ones by gzip."""
    if packed:
        path += ".gz"
        data = gzip.compress(data, mtime=0)
    with open(path, "wb") as file:
        file.write(data)
    return path


def cut(rng, rows):
    """Rows in files of uneven sizes."""
    if len(rows) < 20 or rng.random() < 0.6:
        return [rows]
    ends = sorted(rng.sample(range(1, len(rows)), rng.choice([1, 2, 4])))
    return [rows[i:j] for i, j in zip([0] + ends, ends + [len(rows)])]


def write_parts(rng, directory, suffix, rows, text_of, packed):
    """Their paths, as a value of data.train: a name, a list or a glob."""
    parts = cut(rng, rows)
    paths = [write(f"{directory}/train-{i}.{suffix}", text_of(part), packed)
             for i, part in enumerate(parts)]
    return f"{directory}/train-*" if len(paths) > 1 and rng.random() < 0.5 else ",".join(paths)


def label_of(rng, row, classes, regress):
    """Depends on the row a little; the first rows have one class each."""
    if regress:
        return f"{rng.gauss(0, 1) + row % 3 + regress:.5g}"
    return row if row < classes else min(int(rng.random() * classes * 1.3), classes - 1)


def task(rng, rows):
    """(classes, offset of the targets; 0: classes)"""
    if rng.random() < 0.3:
        rows.keys["model.task"] = "regress"
        return 0, rng.choice([1, 50, -2000])
    return rng.choice([2, 2, 3, 5, 7]), 0


# ---- tables --------------------------------------------------------------------------------------

class Table:
    def __init__(self, rng, rows):
        self.classes, self.regress = task(rng, rows)
        self.kinds = [rng.choice(["number", "number", "integer", "text"])
                      for _ in range(rng.randint(1, 7))]
        self.names = rng.sample(NAMES, len(self.kinds))
        self.targets = rng.choice([1, 1, 2, 3]) if self.regress else 1
        self.yes = bool(self.regress) and rng.random() < 0.4  # or no, each
        if self.yes:
            rows.keys["model.task"] = "multilabel"
        self.texts = {c: rng.sample(TEXTS, rng.randint(2, len(TEXTS)))
                      for c in range(len(self.kinds))}
        self.gaps = rng.choice([0, 0, 0.05, 0.3])
        self.named = rng.random() < 0.8
        self.at = (rng.randint(0, len(self.kinds)) if self.named or rng.random() < 0.3
                   else len(self.kinds))
        self.labels = ([f"class {c}" for c in range(self.classes)] if rng.random() < 0.4
                       else list(range(self.classes)))
        self.more = [name for name in ("w", "skip") if rng.random() < 0.25]
        self.separator = rng.choice([",", ",", ",", ";", "\t", "|"])
        self.end = rng.choice(["\n", "\n", "\r\n"])
        self.quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
        self.mark = rng.random() < 0.1

    def value(self, rng, column):
        if rng.random() < self.gaps:
            return rng.choice(GAPS)
        kind = self.kinds[column]
        if kind == "text":
            return self.texts[column][int(len(self.texts[column]) * rng.random() ** 2)]
        return str(rng.randint(0, 9)) if kind == "integer" else number(rng)

    def rows(self, rng, count):
        """(features, label) each"""
        made = []
        for r in range(count):
            labels = [label_of(rng, r, self.classes, self.regress) for _ in range(self.targets)]
            if self.yes:
                labels = [rng.choice("01") for _ in labels]
            made.append(([self.value(rng, c) for c in range(len(self.kinds))],
                         labels if self.regress else [str(self.labels[labels[0]])]))
        return made

    def place(self, features, label, weight, skipped):
        """All columns: the label between the features, what else there is behind."""
        more = {"w": weight, "skip": skipped}
        return features[:self.at] + label + features[self.at:] + [more[name] for name in self.more]

    def text(self, rng, rows, named):
        out = io.StringIO()
        writer = csv.writer(out, delimiter=self.separator, lineterminator=self.end,
                            quoting=self.quoting)
        if named:
            writer.writerow(self.place(self.names, self.label_names(), "w", "skip"))
        for r, (features, label) in enumerate(rows):
            writer.writerow(self.place(features, label, f"{0.5 + rng.random():.3g}", f"id {r}"))
        return (b"\xef\xbb\xbf" if self.mark and named else b"") + out.getvalue().encode()

    def label_names(self):
        return ["the label"] + [f"label {i}" for i in range(1, self.targets)]

    def column(self, name):
        """As a key has it: its name or its number."""
        return name if self.named else str(self.place(list(map(str, range(len(self.kinds)))),
                                                      self.label_names(), "w",
                                                      "skip").index(name))


def json_value(text, kind):
    if text in GAPS:
        return None
    return text if kind == "text" else float(text)


def make_table(rng, directory, rows):
    import json
    table = Table(rng, rows)
    train, held_out = table.rows(rng,
                                 rng.randint(40, 300)), table.rows(rng, rng.choice([7, 60, 300]))
    packed = rng.random() < 0.2
    rows.keys["data.train"] = write_parts(rng, directory, "csv", train,
                                          lambda part: table.text(rng, part, table.named), packed)
    held_out_file = write(f"{directory}/held-out.csv", table.text(rng, held_out, table.named),
                          packed)
    rows.keys["data.label"] = ",".join(table.column(name) for name in table.label_names())
    if not table.named and (table.gaps or "text" in table.kinds):
        rows.keys["data.header"] = "no"  # a row of texts alone may be one of names
    if "skip" in table.more:
        rows.keys["data.ignore"] = table.column("skip")
    if "w" in table.more:
        rows.keys["data.weight"] = table.column("w")
    if table.gaps:
        rows.keys["data.missing"] = rng.choice(["mean", "flag"])
    rows.likely["data.min_count"] = ["1", "1", "2", "5"]
    rows.likely["data.hash_bits"] = ["0", "0", "0", "1", "4", "8"]
    if "text" in table.kinds:
        rows.likely["model.embedding"] = ["1", "3"]
        texts = [table.column(n) if table.named else str(c + table.targets * (c >= table.at))
                 for c, (n, kind) in enumerate(zip(table.names, table.kinds)) if kind == "text"]
        if not any("," in t or '"' in t for t in texts):
            rows.likely["data.categories"] = ["auto", ",".join(texts)]
    rows.likely["data.eval"] = [held_out_file]
    if table.named:
        rows.by_hand["CSV"] = table.text(rng, held_out, True)
        objects = [dict(zip(table.names, map(json_value, features, table.kinds)))
                   for features, _ in held_out]
        rows.by_hand["JSON"] = "".join(json.dumps(o) + "\n" for o in objects).encode()
    arrays = [list(map(json_value, features, table.kinds)) for features, _ in held_out]
    rows.by_hand["arrays"] = "".join(json.dumps(a) + "\n" for a in arrays).encode()


# ---- sparse rows ---------------------------------------------------------------------------------

def make_libsvm(rng, directory, rows):
    classes, regress = task(rng, rows)
    features, density = rng.choice([(6, 3), (40, 5), (2000, 10), (2000, 3)])
    signs = classes == 2 and rng.random() < 0.3

    def lines(count):
        made = []
        for r in range(count):
            label = label_of(rng, r, classes, regress)
            index = sorted(rng.sample(range(1, features + 1), rng.randint(r == 0, density)))
            values = " ".join(f"{i}:{rng.choice(['1', number(rng)])}" for i in index)
            made.append(f"{2 * label - 1 if signs else label} {values}\n".encode())
        return made

    packed = rng.random() < 0.2
    train, held_out = lines(rng.randint(40, 300)), lines(rng.choice([7, 60, 300]))
    train[-1] = train[-1].split()[0] + f" {features}:1\n".encode()
    rows.keys["data.train"] = write_parts(rng, directory, "svm", train, b"".join, packed)
    rows.likely["data.eval"] = [write(f"{directory}/held-out.svm", b"".join(held_out), packed)]
    rows.likely["data.features"] = [str(features), str(features // 2), str(features + 9)]
    rows.likely["train.lazy"] = ["yes"]
    if features == 2000:
        rows.shape, rows.likely["data.shape"] = (40, 50, 1), ["40x50x1"]
    rows.by_hand["LIBSVM"] = b"".join(held_out)


# ---- pictures ------------------------------------------------------------------------------------

def idx(values, *shape):
    return struct.pack(">HBB", 0, 8,
                       len(shape)) + struct.pack(f">{len(shape)}I", *shape) + bytes(values)


def make_idx(rng, directory, rows):
    classes = rng.choice([2, 3, 6])
    height, width = rng.choice([(6, 5), (8, 8), (1, 12), (12, 7)])
    packed = rng.random() < 0.5

    def pair(name, count):
        labels = [label_of(rng, r, classes, 0) for r in range(count)]
        pixels = [rng.randint(0, 200) + 10 * (p % classes == label) for label in labels
                  for p in range(height * width)]
        return (write(f"{directory}/{name}-images", idx(pixels, count, height, width), packed),
                write(f"{directory}/{name}-labels", idx(labels, count), packed), pixels)

    rows.keys["data.train"], rows.keys["data.train_labels"], _ = pair("train", rng.randint(40, 200))
    count = rng.choice([7, 60, 300])
    held_out, labels, pixels = pair("held-out", count)
    rows.likely["data.eval"], rows.likely["data.eval_labels"] = [held_out], [labels]
    rows.shape = (height, width, 1)
    if rng.random() < 0.8:
        rows.keys["data.scale"] = "0.004"
    flat = height * width
    rows.by_hand["arrays"] = "".join(f"{pixels[r * flat:(r + 1) * flat]}\n"
                                     for r in range(count)).encode()


def make_pictures(rng, directory, rows):
    """A table without texts whose rows have a shape."""
    classes, regress = task(rng, rows)
    rows.shape = rng.choice([(4, 6, 2), (5, 5, 1), (3, 8, 3), (1, 20, 2)])
    height, width, channels = rows.shape
    count = height * width * channels

    def text(part):
        return "".join(",".join([number(rng) for _ in range(count)] + [str(label)]) + "\n"
                       for label in part).encode()

    labels = [label_of(rng, r, classes, regress) for r in range(rng.randint(40, 200))]
    rows.keys["data.train"] = write_parts(rng, directory, "csv", labels, text, False)
    rows.keys["data.shape"] = f"{height}x{width}x{channels}"
    held_out = text([label_of(rng, r, classes, regress) for r in range(60)])
    rows.likely["data.eval"] = [write(f"{directory}/held-out.csv", held_out, False)]
    lines = [line.rsplit(b",", 1)[0] for line in held_out.splitlines()]
    rows.by_hand["arrays"] = b"".join(b"[" + line + b"]\n" for line in lines)


def make_large(rng, directory, rows):
    """More than data.memory_mb=1 holds: read as a stream."""
    classes, regress = task(rng, rows)
    values = [",".join(number(rng) for _ in range(500)) for _ in range(16)]

    def text(part):
        return "".join(f"{number(rng)},{rng.choice(values)},{rng.choice(values)},{label}\n"
                       for label in part).encode()

    labels = [label_of(rng, r, classes, regress) for r in range(320)]
    rows.keys["data.train"] = write_parts(rng, directory, "csv", labels, text, False)
    rows.keys["data.memory_mb"] = "1"
    rows.keys["data.header"] = "no"
    rows.likely["data.eval"] = [write(f"{directory}/held-out.csv",
                                      text([label_of(rng, r, classes, regress) for r in range(20)]),
                                      False)]


# ---- shards --------------------------------------------------------------------------------------

OF_FILES = ["data.train", "data.train_labels", "data.label", "data.ignore", "data.missing",
            "data.shape", "model.task"]


def into_hdf5(rng, directory, rows, dtrain):
    """The training data by `dtrain shard`; the held-out rows stay what they are. False: refused."""
    keys = [f"{key}={rows.keys[key]}" for key in OF_FILES if key in rows.keys]
    done = subprocess.run([dtrain, "shard", f"{directory}/shards", rng.choice("135")] + keys,
                          capture_output=True)
    if done.returncode:
        return False
    for key in OF_FILES[:-1]:
        rows.keys.pop(key, None)
    rows.keys.pop("data.header", None)
    for key in ("data.eval", "data.eval_labels", "data.features", "data.categories", "data.weight",
                "data.min_count", "data.hash_bits"):
        rows.likely.pop(key, None)
    rows.keys.pop("data.weight", None)
    rows.by_hand = {}
    rows.keys["data.train"] = f"{directory}/shards/*.h5"
    return True


def make(rng, directory, dtrain):
    os.makedirs(directory, exist_ok=True)
    rows = Rows()
    kinds = {make_table: 8, make_libsvm: 4, make_idx: 2, make_pictures: 2, make_large: 1}
    rng.choices(list(kinds), list(kinds.values()))[0](rng, directory, rows)
    if rng.random() < 0.2:
        into_hdf5(rng, directory, rows, dtrain)
    rows.files = sorted(glob.glob(rows.keys["data.train"].split(",")[0]))
    return rows
