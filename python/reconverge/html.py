"""HTML for notebooks."""

from __future__ import annotations

import json
import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .launch import Result
    from .instruction import Explanation
    from .program import Program
    from .session import Session
    from .stats import Stats
    from .trace import Trace

_PRE = 'style="font-family:monospace;white-space:pre;line-height:1.35;text-align:left"'
#: Colours that users can read on a white and on a black background.
_NAME, _REGISTER, _NUMBER, _QUIET = "#3b7dd8", "#2a9d6a", "#c0622d", "#888888"
#: Colour and description for each letter of :class:`reconverge.session.Why`.
STATES = {
    "A": ("#3b7dd8", "active"),
    "b": ("#e0a030", "switched off by a branch"),
    "k": ("#d64545", "behind a break"),
    "c": ("#a050b0", "behind a continue"),
    "p": ("#c9b037", "parked at another address"),
    "x": ("#bbbbbb", "exited"),
    "u": ("#dddddd", "uncovered"),
}
_LINES = 400
_TOKEN = re.compile(
    r"(?P<register>\$[a-z]+\d+\w*|\b(?:temp|src|out|const|input)\d*\[[^\]]*\]|\b(?:R|T|KC|PV|PS)\d+\b(?:\.\w+)?|[a-z]\d*\[[^\]]*\])"
    r"|(?P<number>(?<![\w.])#?-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?f?)\b)"
    r"|(?P<name>(?<![\w$.])[A-Za-z_][A-Za-z_0-9]*)"
)


class Page:
    """An HTML page, which a notebook shows inline.

    ``place`` is the step at which the page of a run opens, in the form of the page's URL: ``step=12`` or ``step=12&lane=3``.
    """

    def __init__(self, text: str, height: int = 720, place: str = "") -> None:
        self.text, self.height, self.place = text, height, place

    def save(self, path: str) -> None:
        """Writes the page to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text)

    def __repr__(self) -> str:
        return f"<Page at {self.place}>" if self.place else "<Page>"

    def _repr_html_(self) -> str:
        # The text of the frame is in the attribute `srcdoc` instead of a `data:` URL. In Chromium, a `data:` URL has at
        # most 2 MB. Some editors do not load `data:` URLs. The page sets the fragment of the URL. The element `base`
        # prevents a change of the notebook's URL.
        head = '<head><base href="about:srcdoc">'
        if self.place:
            head += f"<script>location.hash = {json.dumps(self.place)}</script>"
        text = self.text.replace("<head>", head, 1)
        return f'<iframe srcdoc="{escape(text)}" width="100%" height="{self.height}" style="border:0"></iframe>'


class Picture:
    """An SVG picture."""

    def __init__(self, text: str) -> None:
        self.text = text

    def save(self, path: str) -> None:
        """Writes the picture to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text)

    def __repr__(self) -> str:
        return f"<Picture of {len(self.text)} characters>"

    def _repr_svg_(self) -> str:
        return self.text


def coloured(code: str) -> str:
    """An instruction as HTML. Its first word, its registers and its numbers are coloured."""
    colours = {"register": _REGISTER, "number": _NUMBER}
    parts, end, named = [], 0, False
    for found in _TOKEN.finditer(code):
        kind = found.lastgroup or ""
        parts.append(escape(code[end : found.start()]))
        end = found.end()
        text = escape(found[0])
        if kind == "name":
            parts.append(text if named else f'<b style="color:{_NAME}">{text}</b>')
            named = True
        else:
            parts.append(f'<span style="color:{colours[kind]}">{text}</span>')
    return "".join([*parts, escape(code[end:])])


def lane_bar(letters: str) -> str:
    """A bar with one cell per lane. The colour of a cell shows the reason why the cell's lane runs or waits."""
    cells = []
    for lane, letter in enumerate(letters):
        colour, words = STATES[letter]
        cells.append(
            f'<span title="lane {lane}: {words}" style="display:inline-block;width:9px;height:14px;'
            f'margin-right:1px;background:{colour}"></span>'
        )
    return "".join(cells)


def _row(program: Program, index: int, here: bool = False) -> str:
    each = program[index]
    address = escape(program._native.spelled(each.address))
    label = f"{escape(each.label)}:\n" if each.label else ""
    notes = f'  <span style="color:{_QUIET}">; {escape("; ".join(each.notes))}</span>' if each.notes else ""
    line = f'<span style="color:{_QUIET}">{address:>6}</span>  {"  " * each.depth}{coloured(each.text)}{notes}'
    if here:
        line = f'<span style="background:#3b7dd833">{line}</span>'
    return label + line


def listing(program: Program, here: int | None = None) -> str:
    """A coloured listing. The instruction at the address ``here`` is marked."""
    rows = [_row(program, index, each.address == here) for index, each in enumerate(program) if index < _LINES]
    if len(program) > _LINES:
        rows.append(f'<span style="color:{_QUIET}">… {len(program) - _LINES} more instructions</span>')
    return f"<div>{escape(repr(program))}</div><div {_PRE}>" + "\n".join(rows) + "</div>"


def _table(header: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{escape(each)}</th>" for each in header)
    body = "".join("<tr>" + "".join(f'<td style="text-align:left">{each}</td>' for each in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def explanation(explained: Explanation) -> str:
    """The fields of an instruction in a table."""
    rows = [
        [
            f"{each.index}",
            f"{each.hi}:{each.lo}" if each.hi != each.lo else f"{each.hi}",
            f"<b>{escape(each.name)}</b>",
            escape(each.text),
            escape(each.doc),
        ]
        for each in explained.fields
    ]
    words = " ".join(f"{word:08x}" for word in explained.words)
    sentences = "".join(f"<p>{escape(each)}</p>" for each in [*explained.meaning, *explained.flow])
    return (
        f"<div {_PRE}>{coloured(explained.text)}   <span style=\"color:{_QUIET}\">{words}</span></div>"
        + _table(["word", "bits", "field", "value", "meaning"], rows)
        + f'{sentences}<p style="color:{_QUIET}">{escape(explained.source)}</p>'
    )


def result(left: Result) -> str:
    """The outputs of a run, and the exactness of its operations."""
    rows = []
    for name, array in left.items():
        first = escape(" ".join(str(each) for each in array.reshape(-1)[:8].tolist()))
        more = " …" if array.size > 8 else ""
        rows.append([f"<b>{escape(name)}</b>", f"{array.dtype}", f"{list(array.shape)}", f"<code>{first}{more}</code>"])
    grades: dict[str, list[str]] = {}
    for name, (grade, times) in left.fidelity.items():
        grades.setdefault(grade, []).append(f"{name} ×{times}")
    exact = "".join(f"<div><b>{grade}</b>: {escape(', '.join(names))}</div>" for grade, names in grades.items())
    wrong = "".join(f"<div><b>{escape(each)}</b></div>" for each in [*left.mismatches, *left.findings])
    counts = (
        f"{left.instructions:,} group instructions, {left.lane_instructions:,} lane instructions, "
        f"{left.divergent_branches:,} divergent branches"
    )
    return f"<div>{escape(left.title)}: {counts}</div>" + _table(["output", "type", "shape", "first"], rows) + exact + wrong


def stats(counts: Stats) -> str:
    """Counts by instruction. A bar shows the share of active lanes."""
    lines = sorted(counts.instructions, key=lambda each: each["pc"])
    most = max((each["executed"] for each in lines), default=1)
    rows = []
    for each in lines[:_LINES]:
        bar = f'<span style="display:inline-block;height:8px;background:{_NAME};width:{90 * each["executed"] / most:.0f}px"></span>'
        diverged = f"{each['diverged']:,}" if each["diverged"] else ""
        mean = each["lanes"] / each["executed"]
        code = f"<code>{coloured(each['text'])}</code>"
        rows.append([f"{each['pc']}", f"{each['executed']:,} {bar}", f"{mean:.1f}", diverged, code])
    header = ["address", "executed", "lanes", "diverged", "instruction"]
    return f"<div>{escape(repr(counts))}</div>" + _table(header, rows)


_STEPS = 64


def trace(events: Trace) -> str:
    """The first instructions of the trace's first group. Each instruction has a row, and each lane has a cell in this row."""
    issues = events.of("issue")
    first = issues.where(issues.group == (issues.group[0] if len(issues) else 0))
    texts = {each.address: each.text for each in events.program}
    rows = []
    for event, lanes in zip(list(first)[:_STEPS], first.lanes(events.width)[:_STEPS], strict=True):
        bar = lane_bar("".join("A" if runs else "u" for runs in lanes))
        spelled = escape(events.program._native.spelled(event.pc))
        rows.append(f"{event.step:>6} {bar} {spelled:>6}  {coloured(texts.get(event.pc, ''))}")
    more = len(first) - _STEPS
    if more > 0:
        rows.append(f'<span style="color:{_QUIET}">… {more} more instructions of this group</span>')
    return f"<div>{escape(repr(events))}</div><div {_PRE}>" + "\n".join(rows) + "</div>"


def session(stepped: Session) -> str:
    """The position of a session: the lanes, the stack, and the next instruction of the session."""
    if stepped.ended or stepped.pc is None:
        return f"<div>{escape(repr(stepped))}</div>"
    program = stepped.program
    at = next(index for index, each in enumerate(program) if each.address == stepped.pc)
    near = range(max(at - 4, 0), min(at + 5, len(program)))
    lines = "\n".join(_row(program, index, index == at) for index in near)
    rows = [
        [
            escape(row.kind),
            "" if row.pc is None else escape(program._native.spelled(row.pc)),
            "" if row.mask is None else f"<code>{row.mask:0{(len(stepped.lanes()) + 3) // 4}x}</code>",
            "" if row.counter is None else f"{row.counter}",
        ]
        for row in stepped.stack()
    ]
    why = "".join(each.letter for each in stepped.why())
    head = f"group {stepped.group} of {stepped.groups}, after {stepped.instructions:,} instructions"
    stack = _table(["stack", "address", "lanes", "count"], rows) if rows else ""
    return f"<div>{head}</div><div>{lane_bar(why)}</div><div {_PRE}>{lines}</div>{stack}"
