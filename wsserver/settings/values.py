"""What can be set, with defaults: one frozen value.

Where values come from is `wsserver.settings.sources`, what has to hold between them
`wsserver.settings.checks`. Only `wsserver.assembly` and what stands on it know this
value; the other rooms are given the few numbers they need.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from wsserver.settings.tables import McpEntry, Model, ToolEntry
from wsserver.settings.value_types import (
    Bound,
    Bytes,
    Count,
    FrameBytes,
    Host,
    JwtAlgorithm,
    KeysUrl,
    Origin,
    Port,
    Seconds,
    SecondsOrZero,
    Text,
)


class Settings(Struct, frozen=True, kw_only=True):
    """Everything that can be set. None means: no limit, or not there.

    The text of each `Meta` is what `wsserver serve --help` says.
    """

    host: Annotated[Host, Meta(description="Address to bind.")] = "127.0.0.1"
    port: Annotated[Port, Meta(description="Port; 0 takes a free one.")] = 8765
    store: Annotated[
        Annotated[
            str,
            Meta(
                pattern=r"^(memory|sqlite(:.+)?)$",
                title="memory, sqlite or sqlite:PATH",
            ),
        ],
        Meta(description="memory, sqlite:PATH, or sqlite in the user's state folder."),
    ] = "sqlite"
    log_format: Annotated[
        Literal["console", "json"], Meta(description="How log lines look.")
    ] = "console"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="The least level that is logged."),
    ] = "info"

    auth_keys_file: Annotated[
        Text | None,
        Meta(description="File of `principal:key` lines. SIGHUP reads it again."),
    ] = None
    auth_call: Annotated[
        Text | None, Meta(description="Knows tokens: an async `module:function`.")
    ] = None
    auth_jwt_algorithms: Annotated[
        tuple[JwtAlgorithm, ...],
        Meta(description="Algorithms that JSON Web Tokens may be signed with."),
    ] = ()
    auth_jwt_key_file: Annotated[
        Text | None,
        Meta(
            description="The tokens' public key in PEM, or the secret for HMAC."
            " SIGHUP reads it again."
        ),
    ] = None
    auth_jwt_jwks_url: Annotated[
        KeysUrl | None,
        Meta(description="Where the issuer publishes its keys, instead of the file."),
    ] = None
    auth_jwt_audience: Annotated[
        Text | None, Meta(description="What a token's `aud` has to name.")
    ] = None
    auth_jwt_issuer: Annotated[
        Text | None, Meta(description="What a token's `iss` has to be, if anything.")
    ] = None
    auth_jwt_leeway_seconds: Annotated[
        Annotated[float, Meta(ge=0, le=300)],
        Meta(description="By how much the issuer's clock may differ."),
    ] = 5.0
    auth_jwt_principal_claim: Annotated[
        Text, Meta(description="The claim that says who somebody is.")
    ] = "sub"
    auth_jwt_space_claim: Annotated[
        Text,
        Meta(
            description="The claim that says whose conversations they see; their own"
            " where a token has none."
        ),
    ] = "wsserver.space"
    auth_jwt_scope_claim: Annotated[
        Text | None,
        Meta(description="The claim that says what they may do, if any does."),
    ] = None
    allowed_origins: Annotated[
        tuple[Origin, ...],
        Meta(
            description="Web origins that may connect besides the server's own,"
            " such as https://chat.example.org."
        ),
    ] = ()
    tls_cert_file: Annotated[
        Text | None,
        Meta(
            description="Certificate chain in PEM; turns TLS on. SIGHUP reads it"
            " and the key again."
        ),
    ] = None
    tls_key_file: Annotated[
        Text | None, Meta(description="The certificate's private key in PEM.")
    ] = None

    metrics_access: Annotated[
        Literal["loopback", "token", "open"],
        Meta(
            description="Who may read /metrics: this machine with no proxy between,"
            " whoever has the token, or everybody."
        ),
    ] = "loopback"
    metrics_token_file: Annotated[
        Text | None,
        Meta(
            description="File of one line: the token for /metrics. SIGHUP reads it"
            " again."
        ),
    ] = None

    default_model: Annotated[
        Text | None,
        Meta(description="The model of conversations that name none."),
    ] = None
    models: Annotated[
        dict[str, Model],
        Meta(description="Table [models.NAME] in the file: base_url, model, ..."),
    ] = {}
    openai_base_url: Annotated[
        Text | None,
        Meta(description="Where models that are not configured are asked for."),
    ] = None
    openai_api_key: Annotated[
        Text | None, Meta(description="The key for that; OPENAI_API_KEY only.")
    ] = None
    local_model_path: Annotated[
        Text | None, Meta(description="GGUF file to serve as the model `local`.")
    ] = None
    context_tokens: Annotated[
        Count, Meta(description="Window of models that say nothing of theirs.")
    ] = 128_000
    params_allowed: Annotated[
        tuple[Text, ...],
        Meta(
            description="The request members that conversations may set as `params`, with"
            " models that say nothing of theirs; `*` stands for any."
        ),
    ] = ("*",)
    params_max: Annotated[
        dict[Text, Bound],
        Meta(
            description="Table [params_max] in the file: how large some of them may be,"
            " such as `max_tokens`."
        ),
    ] = {}

    default_tools: Annotated[
        tuple[Text, ...],
        Meta(
            description="The server's tools that conversations get which say nothing"
            " of tools; `*` stands for anything."
        ),
    ] = ()
    tools: Annotated[
        dict[str, ToolEntry],
        Meta(description="Table [tools.NAME] in the file: call, description, ..."),
    ] = {}
    mcp: Annotated[
        dict[str, McpEntry],
        Meta(description="Table [mcp.NAME] in the file: command or url, ..."),
    ] = {}

    upstream_pool_size: Annotated[
        Count, Meta(description="Connections to one upstream at a time.")
    ] = 256
    upstream_connect_timeout_seconds: Annotated[
        Seconds, Meta(description="To connect to an upstream.")
    ] = 10.0
    upstream_first_token_timeout_seconds: Annotated[
        Seconds, Meta(description="From a model call to its first token.")
    ] = 60.0
    upstream_idle_timeout_seconds: Annotated[
        Seconds, Meta(description="Between two signs of life of an upstream.")
    ] = 30.0
    breaker_failures: Annotated[
        Count,
        Meta(
            description="Failed calls of a model with a fallback until it is passed"
            " over."
        ),
    ] = 5
    breaker_window_seconds: Annotated[
        Seconds, Meta(description="Within which so many calls have to fail.")
    ] = 30.0
    breaker_open_seconds: Annotated[
        Seconds, Meta(description="How long it is passed over until it is tried again.")
    ] = 15.0
    turn_timeout_seconds: Annotated[
        Seconds,
        Meta(description="For a turn, but for the time that it waits for tools."),
    ] = 600.0
    tool_timeout_seconds: Annotated[
        Seconds,
        Meta(
            description="For a tool that names no timeout, from the model's call on, also"
            " while no client is there to run it."
        ),
    ] = 120.0
    detach_grace_seconds: Annotated[
        SecondsOrZero,
        Meta(description="How long a turn that nobody watches goes on."),
    ] = 60.0
    drain_seconds: Annotated[
        SecondsOrZero, Meta(description="What running turns are given on SIGTERM.")
    ] = 10.0

    heartbeat_seconds: Annotated[
        Seconds, Meta(description="Between two heartbeats on a connection.")
    ] = 20.0
    dead_after_seconds: Annotated[
        Seconds, Meta(description="No byte in or out for so long: dead.")
    ] = 60.0
    slow_after_seconds: Annotated[
        Seconds, Meta(description="Nothing taken for so long though due: slow.")
    ] = 30.0
    hello_timeout_seconds: Annotated[
        Seconds, Meta(description="From connecting to `hello`.")
    ] = 5.0

    max_frame_bytes: Annotated[
        FrameBytes, Meta(description="Longest frame in either direction.")
    ] = 262_144
    max_connections: Annotated[
        Count, Meta(description="Client connections at a time.")
    ] = 10_000
    max_address_connections: Annotated[
        Count | None,
        Meta(description="Of these from one address, other than this machine's."),
    ] = 1_000
    max_principal_connections: Annotated[
        Count | None,
        Meta(description="Of these of one principal, where there are credentials."),
    ] = 1_000
    trusted_proxies: Annotated[
        tuple[Text, ...],
        Meta(
            description="Addresses or networks of proxies whose X-Forwarded-For is"
            " believed, such as 127.0.0.1."
        ),
    ] = ()
    max_frames_per_second: Annotated[
        Count,
        Meta(description="Frames from one connection, on average; 5 times that once."),
    ] = 100
    max_principal_frames_per_second: Annotated[
        Count | None,
        Meta(description="The same of one principal, where there are credentials."),
    ] = 1_000
    max_conversations: Annotated[
        Count, Meta(description="Open conversations on one connection.")
    ] = 128
    max_principal_conversations: Annotated[
        Count | None,
        Meta(
            description="The same on all connections of one principal, where there are"
            " credentials."
        ),
    ] = 10_000
    max_principal_stored_conversations: Annotated[
        Count | None,
        Meta(
            description="Conversations of one principal that are stored, open or not,"
            " where there are credentials."
        ),
    ] = 100_000
    max_active_turns: Annotated[
        Count, Meta(description="Running turns of one principal.")
    ] = 16
    max_queued: Annotated[
        Annotated[int, Meta(ge=0)],
        Meta(description="Waiting messages of one conversation."),
    ] = 8
    max_turn_bytes: Annotated[Bytes, Meta(description="Text of one turn.")] = 4_194_304
    max_pending_tools: Annotated[
        Count, Meta(description="Tool calls of one turn, in all.")
    ] = 32
    max_tool_rounds: Annotated[
        Count, Meta(description="Model calls that tools may cause in one turn.")
    ] = 16
    max_tool_output_bytes: Annotated[
        Bytes, Meta(description="Longest output of a tool.")
    ] = 131_072

    retention_days: Annotated[
        Annotated[float, Meta(gt=0, le=36_500)] | None,
        Meta(description="Age at which finished turns are dropped."),
    ] = None
    retention_bytes: Annotated[
        Bytes | None,
        Meta(description="Size at which a conversation's oldest turns are dropped."),
    ] = None
    commit_interval_ms: Annotated[
        Annotated[float, Meta(ge=0, le=1000)],
        Meta(
            description="Time from one commit's start to the next while nobody"
            " waits for one; what somebody waits for is committed sooner."
        ),
    ] = 8.0
    durability: Annotated[
        Literal["process", "power"],
        Meta(
            description="What a commit survives: the end of the process, or the end"
            " of the power (an fsync per commit)."
        ),
    ] = "process"

    inspect: Annotated[
        bool,
        Meta(description="Serve the inspector at /inspect: on loopback, to anyone."),
    ] = False
    inspect_content: Annotated[
        bool,
        Meta(description="Let the inspector and recordings have texts, too."),
    ] = False
    inspect_ring_bytes: Annotated[
        Bytes, Meta(description="How much of a recording is held in memory.")
    ] = 16_777_216
    record: Annotated[
        Text | None, Meta(description="New file to record all frames in.")
    ] = None

    @property
    def inspected(self) -> bool:
        """Whether frames are recorded."""
        return self.inspect or self.record is not None

    @property
    def has_credentials(self) -> bool:
        """Whether clients have to say who they are."""
        return bool(self.auth_keys_file or self.auth_call or self.has_jwt)

    @property
    def has_jwt(self) -> bool:
        """Whether JSON Web Tokens are taken."""
        return self.auth_jwt_key_file is not None or self.auth_jwt_jwks_url is not None


TABLES = frozenset({"models", "tools", "mcp", "params_max"})
"""Settings that only the file can hold."""

SECRETS = frozenset({"openai_api_key"})
"""Settings whose value is never shown."""
