#!/usr/bin/env python3
"""Writes case_costs.def, what shards are balanced by, from a measured report.

    kvcts run --candidate reference --level exhaustive --threads 1 --report DIR
    python3 conformance/runner/case_costs.py DIR/report.json

The reference's time stands for a case's: what a run spends is mostly the reference's passes over
its bytes. Medians, so that a busy machine does not bend them."""

import json
import statistics
import sys
from pathlib import Path

LARGE_NS = 50_000_000  # cases from here on are named, the others take their kernel's mean


def main():
    report = json.loads(Path(sys.argv[1]).read_text())
    kernels = {}
    for case in report["cases"]:
        kernels.setdefault(case["kernel"], []).append(case)
    lines = [f"// Written by case_costs.py: {len(report['cases'])} cases of the level {report['level']}, candidate "
             f"{report['candidate']['name']}, on",
             f"// {report['environment']['system']}, {report['environment']['time']}.",
             "// KERNEL(name, ps a byte, ns a case, bytes of an ordinary case); LARGE(kernel, case, bytes)."]
    for kernel, cases in sorted(kernels.items()):
        big = [c for c in cases if c["bytes_compared"] >= 65536]
        ps = round(statistics.median(c["seconds"] * 1e12 / c["bytes_compared"] for c in big))
        ns = round(min(c["seconds"] for c in cases) * 1e9)
        large = [c for c in cases if ps * c["bytes_compared"] // 1000 >= LARGE_NS]
        rest = [c["bytes_compared"] for c in cases if c not in large]
        lines.append(f'KERNEL("{kernel}", {ps}, {ns}, {round(statistics.mean(rest))})')
        lines += [f'LARGE("{kernel}", "{c["name"]}", {c["bytes_compared"]})'
                  for c in sorted(large, key=lambda c: c["name"])]
    Path(__file__).with_name("case_costs.def").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
