"""Draws the workflow's rule graph for the book, from Snakemake's own description of it, without Graphviz."""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt

from bookkit import style
from bookkit.build.project import Project

NODE = re.compile(r'^\s*(\d+)\[label = "([^"]+)"', re.MULTILINE)
EDGE = re.compile(r"^\s*(\d+) -> (\d+)\s*$", re.MULTILINE)


def read_dot(dot: str) -> list[tuple[str, str]]:
    """Arrows (from, to) between rule names in what `snakemake --rulegraph` prints.

    Raises ValueError when there is none: then that text is no rule graph.
    """
    names = dict(NODE.findall(dot))
    arrows = sorted((names[tail], names[head]) for tail, head in EDGE.findall(dot))
    if not arrows:
        raise ValueError(f"expected a rule graph in Graphviz' language, got {dot[:200]!r}")
    return arrows


def essential(arrows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The arrows that no longer way round them already implies."""

    def leads(tail: str, head: str) -> bool:
        return tail == head or any(leads(middle, head) for start, middle in arrows if start == tail)

    return [
        (tail, head)
        for tail, head in arrows
        if not any(start == tail and middle != head and leads(middle, head) for start, middle in arrows)
    ]


def rows(arrows: list[tuple[str, str]]) -> dict[str, int]:
    """The row of each rule, 0 at the top, so that every arrow points down."""
    after, before = defaultdict(set), defaultdict(set)
    for tail, head in arrows:
        after[tail].add(head)
        before[head].add(tail)
    height: dict[str, int] = {}

    def rise(rule: str) -> int:
        if rule not in height:
            height[rule] = max((rise(head) + 1 for head in after[rule]), default=0)
        return height[rule]

    top = max(map(rise, list(before) + list(after)))
    return {rule: top - height[rule] for rule in sorted(height)}


def draw(arrows: list[tuple[str, str]], path: Path) -> None:
    """Write the graph as an SVG that depends on nothing but its arrows: one row of boxes for each row of rules."""
    row = rows(arrows)
    columns = defaultdict(list)
    for rule in row:
        columns[row[rule]].append(rule)
    place = {
        rule: (position - (len(rules) - 1) / 2, -depth)
        for depth, rules in columns.items()
        for position, rule in enumerate(rules)
    }
    widest = max(map(len, columns.values()))
    style.use()
    with plt.rc_context({"svg.hashsalt": "rulegraph", "svg.fonttype": "path"}):
        fig, ax = plt.subplots(figsize=(1.9 * widest + 0.6, 0.72 * len(columns) + 0.2), layout="constrained")
        box = {"boxstyle": "round,pad=0.45", "facecolor": "white", "edgecolor": style.BLUE, "linewidth": 1.5}
        labels = {rule: ax.text(*place[rule], rule, ha="center", va="center", bbox=box, zorder=2) for rule in row}
        for tail, head in arrows:
            ax.annotate(
                "",
                xy=place[head],
                xytext=place[tail],
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": style.GREY,
                    "patchA": labels[tail].get_bbox_patch(),
                    "patchB": labels[head].get_bbox_patch(),
                },
            )
        ax.set(xlim=(-widest / 2, widest / 2), ylim=(0.5 - len(columns), 0.5))
        ax.axis("off")
        path.parent.mkdir(parents=True, exist_ok=True)
        fig.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
        plt.close(fig)


def snakemake_rulegraph(root: Path) -> str:
    """What Snakemake prints for the target that passes through every rule."""
    command = [sys.executable, "-m", "snakemake", "reproduce", "--snakefile", "book/workflow/Snakefile", "--nolock"]
    command += ["--rulegraph", "--forceall", "--config", "retrained=true"]
    answer = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if answer.returncode:
        raise RuntimeError(f"snakemake could not describe the workflow:\n{answer.stderr}")
    return answer.stdout


def main() -> None:
    project = Project.find()
    draw(essential(read_dot(snakemake_rulegraph(project.root))), project.build / "rulegraph.svg")


if __name__ == "__main__":
    main()
