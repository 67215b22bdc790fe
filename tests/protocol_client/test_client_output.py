"""What the machine writes: up to the server's limit, each frame counted."""

from msgspec.structs import replace

from protocol.client.events import Replied
from protocol.client.output import Output
from protocol.codec import encode
from protocol.commands import Ack, Ping
from protocol.content import Limits
from tests.protocol_client.wire import LIMITS, WELCOME, Wire

TEN_AT_ONCE: Limits = replace(LIMITS, frames_per_second=1, frames_burst=11)
"""One frame is the hello, one is kept back."""


def limited() -> Output:
    output = Output()
    output.pace.announced(TEN_AT_ONCE, 0.0)
    return output


def test_each_frame_takes_the_room_of_one() -> None:
    output = limited()
    for sent in range(9):
        assert output.pace.has_room(), sent
        output.write(Ping())
    assert not output.pace.has_room()


def test_ten_acknowledgements_take_the_room_of_one() -> None:
    output = limited()
    for _ in range(8):
        output.write(Ping())
    for _ in range(10):
        output.write(Ack(conversation="c", seq=1))
    assert not output.pace.has_room()
    output.pace.advance(0.1)
    assert not output.pace.has_room()
    output.pace.advance(1.0)
    assert output.pace.has_room()


def test_a_frame_as_long_as_the_limit_is_sent_and_no_longer_one() -> None:
    output = Output()
    frame = encode(Ping(t="x"))
    output.frame_bytes = len(frame)
    assert output.write_encoded(frame) is None
    error = output.write_encoded(frame + b" ")
    assert error is not None
    assert (error.code, error.retryable) == ("too_large", False)
    assert output.take_frames() == [frame]


def test_the_limit_of_a_server_that_is_gone_holds_no_hello_back(wire: Wire) -> None:
    wire.connect()
    wire.client.refresh("t" * 200)
    wire.sent()
    wire.receive(WELCOME)
    wire.client.disconnected(None, wire.now)
    wire.advance_to_timer()
    wire.client.connected(wire.now)
    wire.sent()
    wire.receive(replace(WELCOME, limits=replace(LIMITS, frame_bytes=100)))
    wire.client.disconnected(None, wire.now)
    wire.events()
    wire.advance_to_timer()
    wire.client.connected(wire.now)
    assert [each["token"] for each in wire.sent()] == ["t" * 200]
    assert not [event for event in wire.events() if isinstance(event, Replied)]
