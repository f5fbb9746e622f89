"""A Sphinx extension: a page goes to paper in light colours and unfolded; on the screen it then is as it was.

Style sheets cannot do either: in which mode a page is, is said by an attribute, and which of its folds are open, too.
The rest of what differs on paper is in book/_static/book.css. The rules behind verdicts stay folded, as they would
double the scoreboard.
"""

SCRIPT = """{
  const root = document.documentElement
  let mode, shut = []
  addEventListener('beforeprint', () => {
    mode = root.dataset.theme
    root.dataset.theme = 'light'
    shut = [...document.querySelectorAll('details:not([open], .claim *)')]
    for (const fold of shut) fold.open = true
  })
  addEventListener('afterprint', () => {
    root.dataset.theme = mode
    for (const fold of shut) fold.open = false
  })
}"""


def setup(app) -> dict:
    app.add_js_file(None, body=SCRIPT)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
