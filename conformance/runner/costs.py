#!/usr/bin/env python3
"""Writes what shards are balanced by from a measured report: case_costs.def, sweep_costs.def or
drawn_costs.def.

    kvcts run --candidate reference --level exhaustive --threads 1 --report DIR
    kvcts exhaustive --threads 1 --report DIR
    kvcts fuzz --cases 3400 --threads 1 --json FILE
    python3 conformance/runner/costs.py DIR/report.json (or FILE)

The reference's time stands for a case's: what a run spends is mostly the reference's passes over
its bytes. Medians, so that a busy machine does not bend them."""

import json
import statistics
import sys
from pathlib import Path

LARGE_NS = 50_000_000  # cases from here on are named, the others take their kernel's mean


def cases(report):
    kernels = {}
    for case in report["cases"]:
        kernels.setdefault(case["kernel"], []).append(case)
    yield "// KERNEL(name, ps a byte, ns a case, bytes of an ordinary case); LARGE(kernel, case, bytes)."
    for kernel, cases in sorted(kernels.items()):
        big = [c for c in cases if c["bytes_compared"] >= 65536]
        ps = round(statistics.median(c["seconds"] * 1e12 / c["bytes_compared"] for c in big))
        ns = round(min(c["seconds"] for c in cases) * 1e9)
        large = [c for c in cases if ps * c["bytes_compared"] // 1000 >= LARGE_NS]
        rest = [c["bytes_compared"] for c in cases if c not in large]
        yield f'KERNEL("{kernel}", {ps}, {ns}, {round(statistics.mean(rest))})'
        for c in sorted(large, key=lambda c: c["name"]):
            yield f'LARGE("{kernel}", "{c["name"]}", {c["bytes_compared"]})'


def sweeps(report):
    yield "// SWEEP(name, ps an input)."
    for sweep in report["sweeps"]:
        yield f'SWEEP("{sweep["name"]}", {max(1, round(sweep["seconds"] * 1e12 / sweep["inputs"]))})'


def drawn(report):
    yield "// DRAWN(kernel, ns a case)."
    kernels = {}
    for row in report["rows"]:
        kernels.setdefault(row["kernel"], []).append(row)
    for kernel, rows in sorted(kernels.items()):
        yield f'DRAWN("{kernel}", {round(sum(r["seconds"] for r in rows) * 1e9 / sum(r["cases"] for r in rows))})'


def main():
    report = json.loads(Path(sys.argv[1]).read_text())
    if report["schema"] == "kvcts-fuzz":
        name, lines, what = "drawn_costs.def", drawn(report), f"{report['cases']} drawn cases"
    elif report.get("sweeps"):
        name, lines, what = "sweep_costs.def", sweeps(report), f"{len(report['sweeps'])} sweeps"
    else:
        name, lines, what = "case_costs.def", cases(report), f"{len(report['cases'])} cases of the level {report['level']}"
    head = [f"// Written by costs.py: {what}, candidate {report['candidate']['name']}"]
    if "environment" in report:
        head[0] += ", on"
        head.append(f"// {report['environment']['system']}, {report['environment']['time']}.")
    else:
        head[0] += "."
    Path(__file__).with_name(name).write_text("\n".join([*head, *lines]) + "\n")


if __name__ == "__main__":
    main()
