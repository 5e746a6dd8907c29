"""Figures as SVG text, with nothing but strings: bars, strips of points, curves, scatter, and a text painted by who made its tokens.
Readable on a white and on a dark page: a background of their own, dark text."""

import html
import math

COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bb5500", "#5566cc", "#009988", "#997700"]
PLAIN = "#888888"
FONT = "font-family='system-ui, sans-serif' font-size='12'"


def colour(index):
    return COLOURS[index % len(COLOURS)]


class Svg:
    def __init__(self, width, height, title):
        self.width, self.height, self.parts = width, height, []
        self.rect(0, 0, width, height, "#ffffff")
        self.text(12, 20, title, weight="bold")

    def add(self, part):
        self.parts.append(part)

    def rect(self, x, y, w, h, fill, tip=""):
        inner = f"<title>{html.escape(tip)}</title>" if tip else ""
        self.add(f"<rect x='{x:.1f}' y='{y:.1f}' width='{max(w, 0):.1f}' height='{h:.1f}' fill='{fill}'>{inner}</rect>")

    def line(self, x1, y1, x2, y2, stroke="#333333", width=1, dash=""):
        dashed = f" stroke-dasharray='{dash}'" if dash else ""
        self.add(f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{stroke}' stroke-width='{width}'{dashed}/>")

    def dot(self, x, y, fill, tip="", radius=2.5):
        inner = f"<title>{html.escape(tip)}</title>" if tip else ""
        self.add(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{radius}' fill='{fill}' fill-opacity='0.7'>{inner}</circle>")

    def path(self, points, stroke):
        self.add("<polyline fill='none' stroke-width='2' stroke='%s' points='%s'/>" % (stroke, " ".join(f"{x:.1f},{y:.1f}" for x, y in points)))

    def text(self, x, y, text, anchor="start", fill="#222222", weight="normal", extra=""):
        self.add(f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' fill='{fill}' font-weight='{weight}' {FONT} {extra}>{html.escape(text)}</text>")

    def __str__(self):
        return (f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {self.width:.0f} {self.height:.0f}' width='{self.width:.0f}' "
                f"height='{self.height:.0f}'>\n" + "\n".join(self.parts) + "\n</svg>\n")


def ticks(low, high, wanted=5):
    """Round numbers from low to high."""
    if high <= low:
        return [low]
    step = 10 ** math.floor(math.log10((high - low) / wanted))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= wanted)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 10) for i in range(first, int(high / step + 1e-9) + 1)]


def bars(title, series, unit, digits=0):
    """series: [(group, [(name, Interval)])]; a bar each, with its interval as a whisker."""
    left, bar, gap, width = 170, 16, 12, 720
    count = sum(len(items) for _, items in series)
    svg = Svg(width, 44 + count * (bar + 4) + len(series) * (gap + 18) + 24, title)
    most = max((i.high for _, items in series for _, i in items), default=1) or 1
    scale = (width - left - 90) / most
    y = 38
    for group, items in series:
        svg.text(12, y + 12, group, weight="bold")
        y += 18
        for index, (name, interval) in enumerate(items):
            fill = PLAIN if name == "plain" else colour(index)
            svg.text(left - 8, y + 12, name, "end")
            svg.rect(left, y, interval.value * scale, bar, fill, f"{name}: {interval.text(max(digits, 2))} {unit}")
            svg.line(left + interval.low * scale, y + bar / 2, left + interval.high * scale, y + bar / 2)
            svg.text(left + interval.high * scale + 6, y + 12, f"{interval.value:.{digits}f}")
            y += bar + 4
        y += gap
    svg.text(left, y + 10, f"{unit}; whiskers: 95% bootstrap intervals over prompts")
    return str(svg)


def frame(title, xs, ys, x_label, y_label, width=720, height=360, log_x=False):
    """-> (svg, x of a value, y of a value)"""
    left, right, top, bottom = 60, 170, 36, 50
    svg = Svg(width, height, title)
    forward = (lambda v: math.log2(v)) if log_x else (lambda v: v)
    low_x, high_x = forward(min(xs)), forward(max(xs))
    low_y, high_y = min(0, *ys) if len(ys) > 1 else 0, max(ys)
    span_x, span_y = (high_x - low_x) or 1, (high_y - low_y) or 1
    x_of = lambda v: left + (forward(v) - low_x) / span_x * (width - left - right)
    y_of = lambda v: height - bottom - (v - low_y) / span_y * (height - top - bottom)
    for tick in ticks(low_y, high_y):
        svg.line(left, y_of(tick), width - right, y_of(tick), "#dddddd")
        svg.text(left - 6, y_of(tick) + 4, f"{tick:g}", "end")
    for tick in sorted(set(xs)) if log_x else ticks(min(xs), max(xs)):
        svg.line(x_of(tick), height - bottom, x_of(tick), height - bottom + 4)
        svg.text(x_of(tick), height - bottom + 18, f"{tick:g}", "middle")
    svg.text((left + width - right) / 2, height - 12, x_label, "middle")
    svg.text(14, top + (height - top - bottom) / 2, y_label, "middle", extra=f"transform='rotate(-90 14 {top + (height - top - bottom) / 2:.0f})'")
    return svg, x_of, y_of


def legend(svg, names):
    for index, name in enumerate(names):
        svg.rect(svg.width - 160, 40 + index * 18, 10, 10, colour(index))
        svg.text(svg.width - 144, 50 + index * 18, name)


def curves(title, series, x_label, y_label, log_x=False):
    """series: [(name, [(x, Interval)])]"""
    points = [p for _, line in series for p in line]
    if not points:
        return ""
    svg, x_of, y_of = frame(title, [x for x, _ in points], [i.high for _, i in points], x_label, y_label, log_x=log_x)
    for index, (name, line) in enumerate(series):
        svg.path([(x_of(x), y_of(i.value)) for x, i in line], colour(index))
        for x, i in line:
            svg.line(x_of(x), y_of(i.low), x_of(x), y_of(i.high), colour(index))
            svg.dot(x_of(x), y_of(i.value), colour(index), f"{name}, {x:g}: {i.text()}", 3)
    legend(svg, [name for name, _ in series])
    return str(svg)


def scatter(title, series, x_label, y_label):
    """series: [(name, [(x, y, tip)])]"""
    points = [p for _, cloud in series for p in cloud]
    if not points:
        return ""
    svg, x_of, y_of = frame(title, [p[0] for p in points], [p[1] for p in points], x_label, y_label)
    for index, (_, cloud) in enumerate(series):
        for x, y, tip in cloud:
            svg.dot(x_of(x), y_of(y), colour(index), tip)
    legend(svg, [name for name, _ in series])
    return str(svg)


def strips(title, series, x_label, mark=1):
    """series: [(name, [(value, tip)])]: each prompt a point, the median a line; `mark`: a dashed line there, None: none."""
    if not any(values for _, values in series):
        return ""
    left, row, width = 170, 26, 720
    svg = Svg(width, 60 + row * len(series) + 34, title)
    most = max(v for _, values in series for v, _ in values)
    x_of = lambda v: left + v / most * (width - left - 30)
    bottom = 40 + row * len(series)
    for tick in ticks(0, most, 8):
        svg.line(x_of(tick), 34, x_of(tick), bottom, "#dddddd")
        svg.text(x_of(tick), bottom + 16, f"{tick:g}", "middle")
    if mark is not None:
        svg.line(x_of(mark), 34, x_of(mark), bottom, "#888888", dash="4 3")
    for index, (name, values) in enumerate(series):
        y = 40 + row * index + row / 2
        svg.text(left - 8, y + 4, name, "end")
        for k, (value, tip) in enumerate(values):
            svg.dot(x_of(value), y + (k * 7 % 11 - 5), colour(index), tip, 2)
        ordered = sorted(v for v, _ in values)
        if ordered:
            svg.line(x_of(ordered[len(ordered) // 2]), y - 10, x_of(ordered[len(ordered) // 2]), y + 10, "#000000", 2)
    svg.text((left + width) / 2, bottom + 34, x_label, "middle")
    return str(svg)


# ---- a text by who made its tokens

def paint_name(sources, source):
    return "the target" if source < 0 else sources[source] if source < len(sources) else f"drafter {source}"


def painted_svg(title, painted, columns=100):
    """A monospaced text; a token's background says who guessed it first, a tick where a pass of the target began."""
    char, row = 7.3, 18
    lines, column, starts, at = 1, 0, set(), 0
    for tokens, *_ in painted["cycles"]:
        starts.add(at)
        at += tokens
    places = []
    for index, (piece, source) in enumerate(painted["pieces"]):
        for k, c in enumerate(piece):
            if c != "\n" and column >= columns:
                lines, column = lines + 1, 0
            if c != "\n":
                places.append((lines, column, c, source, k == 0 and index in starts))
                column += 1
            else:
                lines, column = lines + 1, 0
    legend_rows = len(painted["sources"]) + 1
    svg = Svg(24 + columns * char, 60 + (lines + legend_rows) * row, title)
    for line, col, c, source, begins in places:
        x, y = 12 + col * char, 30 + line * row
        if source >= 0:
            svg.rect(x, y - 13, char, row - 2, colour(source) + "55")
        if begins:
            svg.line(x, y - 13, x, y + 3, "#999999", 0.7)
        if c.strip():
            svg.text(x, y, c, extra="style='font-family:monospace'")
    y = 50 + (lines + 1) * row
    svg.text(12, y, "not marked: drawn by the target, guessed by nobody; a tick: a pass of the target begins")
    for index, name in enumerate(painted["sources"]):
        svg.rect(12, y + 8 + index * row, 12, 12, colour(index) + "55")
        svg.text(30, y + 18 + index * row, f"guessed first by {name}")
    return str(svg)


def painted_html(title, texts):
    """texts: [(heading, painted)]: a page of its own."""
    out = ["<!doctype html><meta charset='utf-8'>", f"<title>{html.escape(title)}</title>",
           "<style>body{font:15px system-ui;max-width:60em;margin:2em auto;padding:0 1em}pre{white-space:pre-wrap;line-height:1.5}"
           "b{font-weight:normal;border-left:1px solid #999}" + "".join(f".s{i}{{background:{colour(i)}55}}" for i in range(len(COLOURS))) + "</style>",
           f"<h1>{html.escape(title)}</h1>", "<p>A line before a token: a pass of the target begins there. Not marked: the target drew it and nobody had guessed it.</p>"]
    for heading, painted in texts:
        starts, at = set(), 0
        for tokens, *_ in painted["cycles"]:
            starts.add(at)
            at += tokens
        names = " ".join(f"<span class='s{i % len(COLOURS)}'>{html.escape(name)}</span>" for i, name in enumerate(painted["sources"]))
        spans = []
        for index, (piece, source) in enumerate(painted["pieces"]):
            inner = html.escape(piece)
            inner = f"<span class='s{source % len(COLOURS)}'>{inner}</span>" if source >= 0 else inner
            spans.append(f"<b>{inner}</b>" if index in starts else inner)
        out.append(f"<h2>{html.escape(heading)}</h2><p>{names}</p><pre>{''.join(spans)}</pre>")
    return "\n".join(out) + "\n"


def painted_terminal(painted):
    """The same with the 256 colours of a terminal."""
    colours = [25, 167, 28, 136, 38, 90, 130, 62, 30, 94]
    return "".join(piece if source < 0 else f"\x1b[48;5;{colours[source % len(colours)]}m{piece}\x1b[0m" for piece, source in painted["pieces"])
