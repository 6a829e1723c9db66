"""`deskcert proxy`: the second line alone, in front of any client."""

from __future__ import annotations

import asyncio
import signal
import tempfile
from pathlib import Path

import click

from deskcert.cli._shared import Exit, say
from deskcert_schema.errors import HarnessError

__all__ = ["proxy"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--policy", required=True, type=click.Path(path_type=Path), help="A policy with a `network` section.")
@click.option("--ledger", required=True, type=click.Path(path_type=Path), help="Folder for the ledger; made anew.")
@click.option(
    "--listen", default="127.0.0.1:8080", show_default=True, metavar="HOST:PORT", help="Port 0 takes a free one."
)
@click.option("--upstream", metavar="URL", help="Pass requests on to this proxy.")
@click.option(
    "--authority", type=click.Path(path_type=Path), help="Folder of the certificate authority; else a fresh one."
)
@click.option("--tape", type=click.Path(path_type=Path), help="Keep flows for replay in this folder.")
@click.option("--replay", type=click.Path(path_type=Path), help="Answer from such a folder, and forward nothing.")
@click.option("--trust", metavar="FILE", type=click.Path(path_type=Path), help="Authorities of servers, as PEM.")
@click.option("--insecure", is_flag=True, help="Do not check the certificates of servers.")
def proxy(
    *,
    policy: Path,
    ledger: Path,
    listen: str,
    upstream: str | None,
    authority: Path | None,
    tape: Path | None,
    replay: Path | None,
    trust: Path | None,
    insecure: bool,
) -> int:
    """Stop forbidden network writes and record every write, until Ctrl-C."""
    try:
        from deskcert_proxy.alone import open_alone
        from deskcert_proxy.serve import Listening, listen_on, serve

        address = listen_on(listen)
        alone = open_alone(policy, ledger, base=Path.cwd(), tape=tape, replay=replay)
    except ImportError as error:
        raise HarnessError(f"the proxy needs mitmproxy: pip install 'deskcert[proxy]' ({error})") from error

    def ready(listening: Listening) -> None:
        click.echo(f"listening on {listening.server}")
        say(f"certificate authority: {confdir}/mitmproxy-ca-cert.pem; the ledger: {ledger}")

    async def run() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await serve(
            alone.addon,
            listen=address,
            confdir=confdir,
            ready=ready,
            stop=stop,
            upstream=upstream,
            insecure=insecure,
            trust=trust,
        )

    with tempfile.TemporaryDirectory(prefix="deskcert-ca-") as fresh:
        confdir = authority or Path(fresh)
        reason = "ended by the user"
        try:
            asyncio.run(run())
        except BaseException as error:
            reason = f"ended by an error: {type(error).__name__}"
            raise
        finally:
            sealed = alone.finish(reason)
    if sealed is None:
        say(f"the ledger could not be written to the end: {alone.ledger.poisoned}")
        return Exit.INCONCLUSIVE
    say(f"{sealed.size} records; checkpoint:\n{sealed.checkpoint_text}")
    return 0
