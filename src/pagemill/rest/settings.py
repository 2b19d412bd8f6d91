"""Settings of the server, and its limits for jobs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pagemill.config.machine import RuntimeSettings
from pagemill.config.options import Settings, option
from pagemill.config.settings import LayoutChoice, ParseSettings
from pagemill.errors import UsageError
from pagemill.serving.addresses import is_loopback

MIB = 2**20
SHORTEST_KEY = 16
"""Characters. A key is checked with a fast hash, so it must be one that nobody can guess."""
MAX_PAGES = 999_999
"""Pages of a job: see :data:`pagemill.rest.results.PAGES_OF_A_SOURCE`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings(Settings):
    """Limits of one job, one key and one connection."""

    HEADING: ClassVar = "Limits"
    RESULTS: ClassVar = False

    max_file_mib: int = option(default=512, minimum=1, metavar="MIB", help="Largest file of a job.")
    max_job_mib: int = option(default=2048, minimum=1, metavar="MIB", help="Largest request: all files of a job.")
    max_files: int = option(default=1000, minimum=1, maximum=9999, help="Maximum number of files of a job.")
    max_job_pages: int = option(
        default=20_000, minimum=1, maximum=MAX_PAGES, help="Maximum number of pages of a job; one with more fails."
    )
    max_queued: int = option(
        default=1000, minimum=1, help="Maximum number of unfinished jobs; more are answered with 429."
    )
    max_jobs_per_key: int = option(default=500, minimum=1, help="Maximum number of unfinished jobs of one key.")
    active_jobs: int = option(
        default=16, minimum=1, maximum=256, help="Maximum number of jobs that are parsed at once; others wait."
    )
    max_streams: int = option(
        default=256, minimum=1, help="Maximum number of open event streams; more are answered with 503."
    )
    max_connections: int = option(
        default=1024, minimum=8, help="Maximum number of connections; more are answered with 503."
    )
    upload_timeout_s: float = option(
        "--upload-timeout", default=900.0, above=0, help="Time limit for receiving one request."
    )
    idle_timeout_s: float = option(
        "--idle-timeout",
        default=20.0,
        above=0,
        help="Time limit for a client that stops sending in the middle of a request.",
    )

    @property
    def max_file_bytes(self) -> int:
        """Largest file of a job."""
        return self.max_file_mib * MIB

    @property
    def max_job_bytes(self) -> int:
        """All files of a job together."""
        return self.max_job_mib * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings(Settings):
    """Retention of finished jobs and their files."""

    HEADING: ClassVar = "Retention"
    RESULTS: ClassVar = False

    keep_days: float = option(
        default=30.0,
        above=0,
        metavar="DAYS",
        help="Remove jobs, including failed ones, this many days after they finish.",
    )
    keep_gib: float = option(
        default=100.0,
        above=0,
        metavar="GIB",
        help="Remove the oldest finished jobs while all jobs take more than this.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings(Settings):
    """Address, access and storage of the server."""

    HEADING: ClassVar = "Server"
    RESULTS: ClassVar = False

    host: str = option(default="127.0.0.1", metavar="ADDRESS", help="Address to listen at.")
    port: int = option(default=8080, minimum=0, maximum=65535, help="Port to listen at; 0 chooses a free one.")
    data: Path = option(default=Path("pagemill-data"), metavar="DIR", help="Folder of the jobs and their files.")
    api_keys: tuple[str, ...] = option(
        "--api-key",
        default=(),
        metavar="KEY[,KEY...]",
        comma_separated=True,
        environment="PAGEMILL_SERVE_KEYS",
        secret=True,
        help="Key that clients must send; may be repeated. Prefer PAGEMILL_SERVE_KEYS: command lines are public.",
    )
    insecure: bool = option(default=False, help="Listen without keys at an address that others can reach.")
    allow_urls: bool = option(default=False, help="Let clients name public http and https URLs to be fetched.")
    allowed_hosts: tuple[str, ...] = option(
        "--allowed-host",
        default=(),
        metavar="NAME[,NAME...]",
        comma_separated=True,
        help="Further name under which clients reach this server, behind a proxy for example.",
    )
    limits: LimitSettings = LimitSettings()
    retention: RetentionSettings = RetentionSettings()
    parse: ParseSettings = ParseSettings()
    layout: LayoutChoice = LayoutChoice()
    runtime: RuntimeSettings = RuntimeSettings()

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        for key in self.api_keys:
            if len(key) < SHORTEST_KEY or not key.isascii() or not key.isprintable() or " " in key:
                raise UsageError(
                    f"an API key needs at least {SHORTEST_KEY} printable ASCII characters, without spaces",
                    remedy="Make one: python3 -c 'import secrets; print(secrets.token_urlsafe())'",
                )
        if not self.is_loopback and not self.api_keys and not self.insecure:
            raise UsageError(
                f"anyone who can reach {self.host} could use the server",
                remedy="Set keys in PAGEMILL_SERVE_KEYS, or add --insecure in a network that you trust.",
            )

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches the server."""
        return is_loopback(self.host)

    @property
    def jobs_folder(self) -> Path:
        """One folder for each job: ``inputs`` and ``run``."""
        return self.data / "jobs"
