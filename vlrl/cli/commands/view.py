"""`vlrl view`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vlrl.cli.shared import DebugOption, JsonOption, print_result


def command(
    run_dirs: Annotated[list[Path], typer.Argument(help="Folders of runs.", metavar="RUN…")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any free one.")] = 0,
    host: Annotated[
        str, typer.Option(help="Address to serve on; any but this machine's own needs the token in the URL.")
    ] = "127.0.0.1",
    static: Annotated[
        Path | None, typer.Option(help="Write the page into this folder instead.", show_default=False)
    ] = None,
    max_rollouts: Annotated[
        int, typer.Option(min=1, help="Most rollouts of a run in the folder; the newest steps are written.")
    ] = 10_000,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page.")] = True,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """See runs in the browser, also while they train: `vlrl view runs/a runs/b`.

    Curves, what is unusual, and every rollout with its images. The page is served to this machine only, and
    Ctrl-C ends it; with --static it is a folder that any browser opens, without a server.
    """
    if static is not None:
        from vlrl.viewer.browse.static import write_static

        written = write_static(run_dirs, static, max_rollouts)
        typer.echo(f"page: {static / 'index.html'}", err=json)
        for words in written["left_out"]:
            typer.echo(words, err=json)
        print_result({"page": str(static / "index.html"), **written}, json)
        return
    from vlrl.viewer.browse.server import serve

    result = serve(run_dirs, host=host, port=port, on_ready=lambda url: _ready(url, open_browser, json))
    print_result(result, json)


def _ready(url: str, open_browser: bool, as_json: bool) -> None:
    import webbrowser

    typer.echo(f"{url}  (Ctrl-C ends it)", err=as_json)
    if open_browser:
        webbrowser.open(url)
