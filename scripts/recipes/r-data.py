#!/usr/bin/python3
"""A table that Debian carries in a package of R, as CSV, without R.

  scripts/recipes/r-data.py [PACKAGE/]TABLE [FILE.csv [COLUMN]]       FILE: runs/r-data/TABLE.csv

TABLE is a data frame of the package r-cran-PACKAGE (ggplot2): diamonds (price of 53,940 diamonds
from carat, cut, color, clarity and sizes), txhousing (monthly house sales of 46 cities in Texas,
with gaps), modeldata/mlc_churn, ... The package is read where it is installed; else `apt-get
download` fetches it (1 to 5 MB), nothing is installed. Rows and columns are R's, unchanged; missing
values are NA; a table of places (spData/house) gets its coordinates as columns. With COLUMN, rows
that have no value there are left out: what is to be predicted.

Formats: R Internals, 1.8 serialization (XDR, versions 2 and 3) and 1.6 lazy-load databases.
"""
import bz2
import csv
import glob
import gzip
import lzma
import os
import struct
import subprocess
import sys
import tempfile
import zlib

LIBRARY = "usr/lib/R/site-library"
# xz of a lazy-load database has no header.
RAW_XZ = [{"id": lzma.FILTER_LZMA2, "preset": 6}]


class Reader:
    """One serialized value. Vectors become lists, missing values None, attributes a dict beside
    them."""

    def __init__(self, data):
        self.data, self.at, self.seen = data, 2, []
        version = self.ints(3)[0]
        if data[:2] != b"X\n" or version not in (2, 3):
            sys.exit("r-data.py: not a serialization of R in a version that is known")
        if version == 3:
            self.bytes(self.ints(1)[0])

    def bytes(self, count):
        self.at += count
        return self.data[self.at - count:self.at]

    def ints(self, count):
        return struct.unpack(">%di" % count, self.bytes(4 * count))

    def pairs(self, flags):
        """A pairlist as a dict."""
        out = {}
        while flags & 255 == 2:
            if flags & 0x200:
                self.value()
            tag = self.value()[0] if flags & 0x400 else len(out)
            out[tag] = self.value()
            flags = self.ints(1)[0]
        return out

    def value(self):
        """(value, attributes)"""
        flags = self.ints(1)[0]
        kind = flags & 255
        if kind == 254:
            return None, {}
        if kind == 255:
            return self.seen[(flags >> 8) - 1]
        if kind == 1:
            self.seen.append(self.value())
            return self.seen[-1]
        if kind == 2:
            return self.pairs(flags), {}
        if kind == 25:  # an object: its slots
            return None, self.pairs(self.ints(1)[0])
        if kind == 238:
            return self.compact()
        count = self.ints(1)[0]
        if kind == 9:
            return (None if count < 0 else self.bytes(count).decode("utf-8")), {}
        if kind in (10, 13):
            out = [None if i == -2**31 else i for i in self.ints(count)]
        elif kind == 14:
            out = [None if x != x else x
                   for x in struct.unpack(">%dd" % count, self.bytes(8 * count))]
        elif kind in (16, 19):
            out = [self.value() for _ in range(count)]
            out = [value for value, _ in out] if kind == 16 else out
        else:
            sys.exit("r-data.py: a value of kind %d, which is not known" % kind)
        return out, self.pairs(self.ints(1)[0]) if flags & 0x200 else {}

    def compact(self):
        """ALTREP: sequences are written as (count, first, step), others as what they wrap."""
        names, state, attributes = self.value()[0], self.value()[0], self.value()[0]
        if "seq" in next(iter(names.values()))[0]:
            count, first, step = state
            state = [first + step * i for i in range(int(count))]
        elif isinstance(state, list):
            state = state[0][0]
        return state, attributes or {}


def chunk(data, place):
    """One entry of a lazy-load database: its length, how it is packed, and the packed bytes."""
    data = data[place[0] + 4:place[0] + place[1]]
    unpack = {b"2": bz2.decompress,
              b"Z": lambda packed: lzma.decompress(packed, lzma.FORMAT_RAW, None, RAW_XZ),
              b"0": bytes}.get(data[:1])
    return Reader(unpack(data[1:]) if unpack else zlib.decompress(data)).value()


def names_of(attributes):
    return attributes["names"][0]


def missing(name, names):
    sys.exit("r-data.py: there is no table %s; there are %s" % (name, ", ".join(sorted(names))))


def lazy_load(path, name):
    """An object of a lazy-load database."""
    with open(path + ".rdx", "rb") as file:
        index, attributes = Reader(zlib.decompress(file.read(), 47)).value()
    variables, attributes = index[names_of(attributes).index("variables")]
    names = names_of(attributes)
    if name not in names:
        missing(name, names)
    with open(path + ".rdb", "rb") as file:
        return chunk(file.read(), variables[names.index(name)][0])


def saved(path, name):
    """An object of a file that R's save() wrote."""
    with open(path, "rb") as file:
        data = file.read()
    for start, unpack in ((b"\x1f\x8b", gzip.decompress), (b"BZh", bz2.decompress),
                          (b"\xfd7zXZ", lzma.decompress)):
        data = unpack(data) if data.startswith(start) else data
    return Reader(data[5:]).value()[0][name]  # after "RDX3\n"


def load(folder, name):
    if os.path.exists(folder + "/Rdata.rdx"):
        return lazy_load(folder + "/Rdata", name)
    path = "%s/%s.rda" % (folder, name)
    if not os.path.exists(path):
        missing(name, (os.path.basename(other)[:-4] for other in glob.glob(folder + "/*.rda")))
    return saved(path, name)


def table(folder, name):
    """The data frame's columns: (name, texts)."""
    columns, attributes = load(folder, name)
    places = attributes.get("coords")
    if places:
        columns, attributes = attributes["data"]
    names = list(names_of(attributes))
    if places:
        rows = places[1]["dim"][0][0]
        names += places[1]["dimnames"][0][1][0]
        columns = columns + [(places[0][at:at + rows], {}) for at in range(0, len(places[0]), rows)]
    for column, (values, about) in zip(names, columns):
        levels = about["levels"][0] if "levels" in about else None
        yield column, ["NA" if v is None else levels[v - 1] if levels else "%.12g" % v
                       if isinstance(v, float)
                       else v for v in values]


def folder_of(package, scratch):
    """The folder of a package's data, which is fetched to `scratch` unless it is installed."""
    folders = [path + "/data" for path in glob.glob("/%s/*" % LIBRARY)
               if os.path.basename(path).lower() == package]
    if folders:
        return folders[0]
    os.chmod(scratch, 0o755)
    fetched = subprocess.run(["apt-get", "-q", "download", "r-cran-" + package], cwd=scratch,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    files = glob.glob(scratch + "/*.deb")
    if fetched.returncode or not files:
        sys.exit(
            "r-data.py: r-cran-%s is not installed and cannot be fetched: apt-get install r-cran-%s"
                 % (package, package))
    subprocess.run(["dpkg-deb", "-x", files[0], scratch], check=True)
    return glob.glob("%s/%s/*/data" % (scratch, LIBRARY))[0]


def main():
    if not 2 <= len(sys.argv) <= 4 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    package, _, name = sys.argv[1].rpartition("/")
    out = sys.argv[2] if len(sys.argv) > 2 else "runs/r-data/%s.csv" % name
    with tempfile.TemporaryDirectory() as scratch:
        columns = list(table(folder_of(package or "ggplot2", scratch), name))
    rows = list(zip(*(values for _, values in columns)))
    if len(sys.argv) > 3:
        names = [column for column, _ in columns]
        if sys.argv[3] not in names:
            sys.exit("r-data.py: %s has no column %s; it has %s"
                     % (name, sys.argv[3], ", ".join(names)))
        rows = [row for row in rows if row[names.index(sys.argv[3])] != "NA"]
    os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
    with open(out, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(column for column, _ in columns)
        writer.writerows(rows)
    print("%s: %d rows, %d columns" % (out, len(rows), len(columns)))


if __name__ == "__main__":
    main()
