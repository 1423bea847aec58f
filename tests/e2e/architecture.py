"""The lists of functions in architecture.md, from "The life of a step" on.

Each function is in the file that its line names, and the function above it calls it, by its own
name or by that of the table or argument after "as".
"""
import re

text = open("scripts/doc/architecture.md").read().split("## The life of a step", 1)[1]
failed = seen = 0


def body(name, path):
    """The text of a function's definition; None: it is not there."""
    source = open("src/" + path).read()
    found = re.search(r"^[a-z][^;{}=]*\b%s\([^;{}]*\)\n\{.*?^\}" % name, source, re.M | re.S)
    return found and found.group(0)


for block in re.findall(r"```\n(.*?)```", text, re.S):
    above = []  # (indent, name, body) of the functions that lead to the line
    for line in block.splitlines():
        found = re.match(r"( *)(\w+) +(\S+\.c)(?: +as ([\w>.-]+))?", line)
        if not found:
            print(f"not a line of a list: {line}")
            failed += 1
            continue
        indent, name, path, way = len(found[1]), found[2], found[3], found[4]
        text_of = body(name, path)
        seen += 1
        while above and above[-1][0] >= indent:
            above.pop()
        if text_of is None:
            print(f"{name} is not in src/{path}")
            failed += 1
            continue
        if above and not re.search(r"\b%s\(" % re.escape(way or name), above[-1][2]):
            print(f"{above[-1][1]} does not call {way or name}")
            failed += 1
        above.append((indent, name, text_of))
print(f"{seen} functions")
raise SystemExit(failed > 0 or seen < 30)
