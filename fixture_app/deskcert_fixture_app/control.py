"""The control port: how a runner sets up a run and changes the page in the middle of an action.

Never linked from a page. Its paths start with a random token, so that an agent which
guesses the port cannot guess the path.

| request | body | answer |
| --- | --- | --- |
| `POST /start` | `{page, seed, faults, random_seed}` (all optional) | `{url}`, absolute; everything starts anew |
| `POST /perturb` | `{do, args}` as in `perturb` | `{applied}`, and `why` when it is false |
| `GET /health` | | `{ok, effects, pending, kinds}`; writes that may still commit, and what kinds of effects there are |
| `POST /stop` | | `{ok: true}`, then the program exits |
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from deskcert_fixture_app.effects import KINDS
from deskcert_fixture_app.faults import BadPlan, parse_faults
from deskcert_fixture_app.office import Office
from deskcert_fixture_app.perturb import check_perturbation
from deskcert_fixture_app.seed import parse_seed

__all__ = ["control_app"]


async def _body(request: Request, known: set[str]) -> Mapping[str, Any]:
    try:
        found = json.loads(await request.body() or b"{}")
    except ValueError:
        raise BadPlan("the body is not JSON") from None
    if not isinstance(found, Mapping) or set(found) - known:
        raise BadPlan(f"the body must be an object with no other keys than {', '.join(sorted(known))}")
    return found


def control_app(office: Office, token: str) -> Starlette:
    async def start(request: Request) -> Response:
        body = await _body(request, {"page", "seed", "faults", "random_seed"})
        page, random_seed = body.get("page", "/orders"), body.get("random_seed", 0)
        if not isinstance(page, str) or not page.startswith("/") or page.startswith("//"):
            raise BadPlan(f"page is {page!r}; give a path such as /orders")
        if not isinstance(random_seed, int) or isinstance(random_seed, bool):
            raise BadPlan(f"random_seed is {random_seed!r}; give a whole number")
        office.restart(parse_seed(body.get("seed", {})), parse_faults(body.get("faults", [])), random_seed)
        return JSONResponse({"url": office.url + page})

    async def perturb(request: Request) -> Response:
        body = await _body(request, {"do", "args"})
        do, args = check_perturbation(body.get("do"), body.get("args", {}))
        return JSONResponse(await office.bus.perturb(do, args))

    async def health(_: Request) -> Response:
        return JSONResponse({"ok": True, "effects": "enabled", "pending": office.pending, "kinds": list(KINDS)})

    async def stop(_: Request) -> Response:
        return JSONResponse({"ok": True}, background=BackgroundTask(os._exit, 0))

    async def bad_plan(_: Request, error: Exception) -> Response:
        return JSONResponse({"error": str(error)}, status_code=400)

    routes = [
        Route("/start", start, methods=["POST"]),
        Route("/perturb", perturb, methods=["POST"]),
        Route("/health", health),
        Route("/stop", stop, methods=["POST"]),
    ]
    return Starlette(routes=[Mount(f"/{token}", routes=routes)], exception_handlers={BadPlan: bad_plan})
