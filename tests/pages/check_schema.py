"""Holds reports against the schema of report.json.

    python3 tests/pages/check_schema.py docs/report.schema.json WHOLE.json [REPORT.json...]

Every report must satisfy the schema. WHOLE.json has every field that the program writes. With one of its fields taken
away, or with one more field, it must not satisfy the schema any longer.
"""
import json
import pathlib
import re
import sys

import jsonschema

# Objects whose keys are names of scenarios, codes, axes or values.
MAPS = re.compile(r"\.(distribution|distribution\.[^.]*|left_out|rows\[\]\.caught|refused)$")
# Fields that a report may lack.
OPTIONAL = {".scenarios[].bound_bytes", ".scenarios[].crashed", ".scenarios[].earlier_tries", ".scenarios[].generations", ".scenarios[].failure.placement", ".properties[].code"}


def objects(value, path=""):
    """Yields each object of the document, one for each path."""
    if isinstance(value, dict):
        yield path, value
        for key, item in value.items():
            yield from objects(item, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from objects(item, path + "[]")


def main(schema_file, whole_file, *report_files):
    schema = json.loads(pathlib.Path(schema_file).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    wrong = []
    for file in (whole_file, *report_files):
        for error in validator.iter_errors(json.loads(pathlib.Path(file).read_text())):
            wrong.append(f"{file}: {'.'.join(map(str, error.absolute_path)) or 'the document'}: {error.message[:400]}")
    whole = json.loads(pathlib.Path(whole_file).read_text())
    seen = set()
    tried = 0
    for path, value in list(objects(whole)):
        if path in seen or MAPS.search(path):
            continue
        seen.add(path)
        for key in sorted(value):
            if f"{path}.{key}" in OPTIONAL:
                continue
            kept = value.pop(key)
            if validator.is_valid(whole):
                wrong.append(f"the schema does not require {path}.{key}")
            value[key] = kept
            tried += 1
        value["no_such_field"] = 1
        if validator.is_valid(whole):
            wrong.append(f"the schema allows a field that is not in it: {path}.no_such_field")
        del value["no_such_field"]
    for line in wrong:
        print(line)
    print(f"{1 + len(report_files)} reports, {tried} fields of {len(seen)} objects, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
