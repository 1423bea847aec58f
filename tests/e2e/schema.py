"""schema.py SCHEMA RECIPE...: each recipe is valid under the schema, and ten wrong ones are not."""
import configparser
import json
import sys

import jsonschema


def number(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def instance(path):
    ini = configparser.ConfigParser(interpolation=None, inline_comment_prefixes=(" ;",))
    ini.read(path)
    return {section: {key: number(value) for key, value in ini[section].items()}
            for section in ini.sections()}


WRONG = [
    {"trian": {"lr": 1}},
    {"train": {"lrr": 1}},
    {"train": {"lr": "fast"}},
    {"train": {"lr": -1}},
    {"train": {"batch": 1.5}},
    {"train": {"mode": "Sync"}},
    {"train": {"momentum": 1}},
    {"run": {"seed": "one"}},
    {"run": {"reproducible": "maybe"}},
    {"data": {"train": ["a.csv", "b.csv"]}},
    {"eval": []},
]

schema = json.load(open(sys.argv[1]))
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
for path in sys.argv[2:]:
    jsonschema.validate(instance(path), schema)
accepted = [wrong for wrong in WRONG if validator.is_valid(wrong)]
if accepted:
    sys.exit(f"accepted: {accepted}")
print(f"{len(sys.argv) - 2} recipes are valid, {len(WRONG)} wrong ones are not")
