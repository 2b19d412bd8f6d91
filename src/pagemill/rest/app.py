"""The ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from pagemill._version import __version__
from pagemill.errors import PagemillError
from pagemill.rest import docling, glmocr, job_routes, result_routes, search_routes, server_routes, web_app
from pagemill.rest.errors import HttpError, NotFoundError
from pagemill.rest.middleware import Guard, error_answer
from pagemill.rest.models import schemas
from pagemill.rest.server import Server
from pagemill.rest.settings import ServeSettings
from pagemill.runtime.supervisor import Life

_DESCRIPTION = "Turns PDFs, scans, photographs of pages, Office, HWP and web files into regions, tables and Markdown."


def create_app(settings: ServeSettings, life: Life | None = None) -> FastAPI:
    """Create the application. Its lifespan starts and stops the server (``app.state.server``).

    Args:
        settings: Settings of the server.
        life: State of this process, if it is supervised.
    """
    return application(Server(settings, life))


def application(server: Server) -> FastAPI:
    """Create the application of an existing server."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with server:
            yield

    # The pages of documentation that FastAPI serves load scripts from another site: web_app has one of its own.
    app = FastAPI(
        title="pagemill",
        version=__version__,
        description=_DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    # The command line needs the server itself: to stop it, and to look at its health.
    app.state.server = server
    for module in (server_routes, job_routes, result_routes, search_routes, docling, glmocr, web_app):
        # include_router() would build the fields and the dependencies of each route once more, with the first request.
        app.router.routes.extend(module.router(server).routes)
    # Outermost, so that a request is judged before any route or parser reads of it.
    app.add_middleware(Guard, server=server)

    described = app.openapi

    def openapi() -> dict[str, Any]:
        schema = described()  # FastAPI knows the types of requests alone
        schema.setdefault("components", {}).setdefault("schemas", {}).update(schemas())
        return schema

    app.openapi = openapi  # type: ignore[method-assign]

    @app.exception_handler(PagemillError)
    async def refused(request: Request, error: PagemillError) -> Response:
        return error_answer(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return error_answer(HttpError(f"{place}: {first['msg']}", remedy="See /openapi.json.", status=422))

    @app.exception_handler(HTTPException)
    async def failed(request: Request, error: HTTPException) -> Response:
        # Starlette says "Not Found" alone; clients get a sentence and a remedy, as for every other error.
        if error.status_code == 404:
            return error_answer(NotFoundError("not found", remedy="See /openapi.json."))
        return error_answer(HttpError(str(error.detail), remedy="See /openapi.json.", status=error.status_code))

    return app
