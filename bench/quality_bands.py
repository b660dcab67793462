#!/usr/bin/env python3
"""Draws real trainings over the bands that their first tenths foretold.

    bench/quality_bands.py --points studiogan_points.csv --runs studiogan_runs.csv -o bands.svg

For each training, `quality fit` sees the other families alone (as in quality.py), and `quality forecast` the points of
its first tenth. Blue: the median and the 90 % band of the lowest FID so far. Black: what the forecast has seen. Red:
what came after, the lowest FID so far. Both axes are logarithmic.
"""

import argparse
import json
import math
import pathlib
import tempfile

from quality import Program, Trainings, family_of

WIDTH, HEIGHT, MARGIN = 300, 220, 34


def panel(at, title, seen, later, curve):
    x0, y0 = at
    images = [point[0] for point in seen + later]
    fids = [fid for _, fid in seen + later] + [end for point in curve for end in point["best_fid"]["interval"]]
    low_x, high_x, low_y, high_y = min(images), max(images), min(fids), max(fids)

    def place(x, y):
        share_x = math.log(x / low_x) / math.log(high_x / low_x)
        share_y = math.log(y / low_y) / math.log(high_y / low_y)
        return f"{x0 + MARGIN + share_x * (WIDTH - MARGIN - 8):.1f},{y0 + HEIGHT - 20 - share_y * (HEIGHT - 44):.1f}"

    def line(points, color):
        return f'<polyline points="{" ".join(place(*p) for p in points)}" fill="none" stroke="{color}" stroke-width="2"/>'

    def ends(end):
        return [(point["images"], point["best_fid"]["interval"][end]) for point in curve]

    out = [f'<text x="{x0 + MARGIN}" y="{y0 + 14}">{title}</text>']
    for value in [m * 10**e for e in range(0, 4) for m in (1, 2, 5)]:
        if low_y <= value <= high_y:
            y = place(low_x, value).split(",")[1]
            out.append(f'<line x1="{x0 + MARGIN}" x2="{x0 + WIDTH - 8}" y1="{y}" y2="{y}" stroke="#ddd"/>')
            out.append(f'<text x="{x0 + MARGIN - 4}" y="{float(y) + 4}" text-anchor="end">{value}</text>')
    for e in range(5, 10):
        if low_x <= 10**e <= high_x:
            x = place(10**e, low_y).split(",")[0]
            out.append(f'<line x1="{x}" x2="{x}" y1="{y0 + 24}" y2="{y0 + HEIGHT - 20}" stroke="#ddd"/>')
            out.append(f'<text x="{x}" y="{y0 + HEIGHT - 6}" text-anchor="middle">{10**e / 1e6:g}M</text>')
    band = " ".join(place(*p) for p in ends(1) + ends(0)[::-1])
    out.append(f'<polygon points="{band}" fill="#0072b2" fill-opacity="0.2"/>')
    out.append(line([(point["images"], point["best_fid"]["median"]) for point in curve], "#0072b2"))
    out.append(line(later, "#d55e00"))
    for point in seen:
        x, y = place(*point).split(",")
        out.append(f'<circle cx="{x}" cy="{y}" r="2.5"/>')
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/ganymede")
    parser.add_argument("--points", required=True, help="a CSV of points")
    parser.add_argument("--runs", required=True, help="a CSV of runs")
    parser.add_argument("--of", nargs="+", metavar="TEXT", help="only trainings whose name begins with one of these")
    parser.add_argument("-o", "--output", required=True, help="an SVG picture")
    arguments = parser.parse_args()
    trainings = Trainings(arguments.points, arguments.runs)
    drawn = []
    with tempfile.TemporaryDirectory() as folder:
        program = Program(arguments.program, folder)
        for run, points in sorted(trainings.points.items()):
            if arguments.of and not any(run.startswith(text) for text in arguments.of):
                continue
            others = [other for other in trainings.points if family_of(other) != family_of(run)]
            curve = program.folder / "curve.json"
            program.call("fit", program.write_points("others.csv", trainings, others), "--runs", arguments.runs, "-o",
                         curve)
            last = points[-1][0]
            tenth = max(last / 10, points[1][0])
            first = program.write_points("tenth.csv", trainings, [run], tenth)
            answer = program.forecast(curve, first, arguments.runs, run, last, [3])
            later, best = [], math.inf
            for images, fid in points:
                best = min(best, fid)
                if images >= tenth:
                    later.append((images, best))
            row = trainings.rows[run]
            title = f"{run.split('-train')[0]}, {row['dataset']} ({row['fid_reference']} {row['fid_images']})"
            at = (WIDTH * (len(drawn) % 4), HEIGHT * (len(drawn) // 4))
            drawn.append(panel(at, title, [p for p in points if p[0] <= tenth], later, answer["curve"]))
    width, height = WIDTH * min(4, len(drawn)), HEIGHT * math.ceil(len(drawn) / 4)
    pathlib.Path(arguments.output).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n'
        + "\n".join(drawn) + "\n</svg>\n")


if __name__ == "__main__":
    main()
