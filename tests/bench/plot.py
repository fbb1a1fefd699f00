"""The ratios of `ninja bench` as a picture: a row a job, its ratio to the fastest peer by the minimum and by the median of steps, with the
spread over rounds, and to the machine's limit where that is known. SVG without any library.

usage: plot.py peers.json peers.svg
"""

import html
import json
import statistics
import sys

WIDTH, LEFT, RIGHT, TOP, ROW, FOOT = 900, 250, 40, 78, 58, 46
COLOURS = {"median": "#1f5fa8", "minimum": "#2e8b57", "limit": "#8a8a8a"}
COMPARISONS = ("ratio", "limit")  # what is next to the programs of a job
LEGEND = {"median": "ours / best peer, median", "minimum": "ours / best peer, minimum", "limit": "machine's limit / ours, median"}


def marks(results):
    """{name: (ratio, least, most)} of one job; nothing where there is no peer and no limit."""
    found = {}
    peers = [result for name, result in results.items() if name not in ("ours", *COMPARISONS)]
    ours, ratio = results.get("ours"), results.get("ratio")
    if ratio:
        by_round = ratio["median_by_round"]
        found["median"] = (ratio["median"], min(by_round), max(by_round))
        mins = [mine / min(peer["round_mins_ms"][i] for peer in peers) for i, mine in enumerate(ours["round_mins_ms"])]
        found["minimum"] = (ratio["min"], min(mins), max(mins))
    if results.get("limit"):
        by_round = [1 / over for over in results["limit"]["median_by_round"]]
        found["limit"] = (statistics.median(by_round), min(by_round), max(by_round))
    return found


def header(report):
    """Machine, threads, rounds and versions, a line each."""
    versions = ", ".join(f"{name} {version}" for name, version in report.get("versions", {}).items())
    return [f"{report['machine']}, {report['threads']} threads, {report['rounds']} interleaved rounds", versions]


def picture(report):
    """The SVG's text."""
    rows = {name: marks(results) for name, results in report["jobs"].items()}
    most = max([1.2] + [high for row in rows.values() for _, _, high in row.values()])
    height = TOP + ROW * len(rows) + FOOT

    def across(ratio):
        return LEFT + (WIDTH - LEFT - RIGHT) * ratio / most

    def text(x, y, words, anchor="start", size=13, colour="#222"):
        return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}">{html.escape(words)}</text>'

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
           f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>']
    out += [text(12, 22 + 18 * i, line, size=14 - 2 * i) for i, line in enumerate(header(report))]
    for i in range(int(most / 0.2) + 1):
        x = across(0.2 * i)
        out.append(f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{height - FOOT}" stroke="{"#c22" if i == 5 else "#ddd"}"/>')
        out.append(text(x, TOP - 12, f"{0.2 * i:.1f}", "middle", 11))
    for at, (name, row) in enumerate(rows.items()):
        y = TOP + ROW * at
        out.append(text(12, y + ROW / 2 + 4, name))
        for line, (kind, (ratio, low, high)) in enumerate(row.items()):
            middle, colour = y + 12 + 15 * line, COLOURS[kind]
            out.append(f'<line x1="{across(low):.1f}" y1="{middle}" x2="{across(high):.1f}" y2="{middle}" stroke="{colour}" stroke-width="4"/>')
            out.append(f'<circle cx="{across(ratio):.1f}" cy="{middle}" r="5" fill="{colour}"/>')
            out.append(text(across(high) + 9, middle + 4, f"{ratio:.2f}", size=11, colour=colour))
    for at, (kind, words) in enumerate(LEGEND.items()):
        x = 12 + 290 * at
        out.append(f'<circle cx="{x + 5}" cy="{height - 18}" r="5" fill="{COLOURS[kind]}"/>')
        out.append(text(x + 16, height - 14, words, size=12))
    return "\n".join(out) + "\n</svg>\n"


def main():
    with open(sys.argv[1], encoding="utf-8") as report, open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write(picture(json.load(report)))


if __name__ == "__main__":
    main()
