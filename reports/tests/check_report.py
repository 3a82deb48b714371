"""Reads a report directory with Python's own parsers. Usage: check_report.py DIR [SCHEMA]"""

import json
import sys
import xml.etree.ElementTree as tree

with open(sys.argv[1] + "/report.json", encoding="utf-8") as file:
    report = json.load(file)
if len(sys.argv) > 2:
    import jsonschema

    with open(sys.argv[2], encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(report, schema)

# Both files must tell the same cases with the same outcomes.
suites = tree.parse(sys.argv[1] + "/junit.xml").getroot()
element_of = {"passed": None, "failed": "failure", "unsupported": "skipped", "crashed": "error",
              "timed_out": "error"}
told = []
for suite in suites:
    cases = suite.findall("testcase")
    assert int(suite.get("tests")) == len(cases), suite.get("name")
    for case in cases:
        child = case[0].tag if len(case) else None
        told.append((suite.get("name"), case.get("name"), child))
wanted = [(c["kernel"], c["name"], element_of[c["outcome"]]) for c in report["cases"]]
assert sorted(told, key=str) == sorted(wanted, key=str), (told, wanted)
assert int(suites.get("tests")) == report["totals"]["cases"]
for kind, sums in (("failure", ["failed"]), ("error", ["crashed", "timed_out"]),
                   ("skipped", ["unsupported"])):
    attribute = kind if kind == "skipped" else kind + "s"
    assert int(suites.get(attribute)) == sum(report["totals"][s] for s in sums), kind
