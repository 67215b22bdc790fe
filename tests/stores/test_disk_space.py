"""Which files keep their space on a full disk, and what happens where they do not."""

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from tests.stores.samples import ALL, KEY, NOW, OTHER, appending, meta, tokens
from tests.stores.sqlite_rig import begin, crash, open_file, opened, stream, texts
from wsserver.log.store import StoreError, Write
from wsserver.stores import Durability
from wsserver.stores.sqlite import file as sqlite_file
from wsserver.stores.sqlite import text_files
from wsserver.stores.sqlite.disk_space import SPARE_BYTES, check_spare, keeps_space

FILE = 7


def mount(number: int, kind: str, path: str = "/srv") -> str:
    """Returns a line as of `proc_pid_mountinfo(5)`."""
    return f"{number} 27 0:41 / {path} rw,relatime shared:1 - {kind} /dev/sda1 rw,a=b"


def proc(folder: Path, *mounts: str, about: str = "pos:\t0\nmnt_id:\t45\n") -> Path:
    (folder / "fdinfo").mkdir()
    (folder / "fdinfo" / str(FILE)).write_text(about)
    # Paths are bytes, whatever they mean.
    lines = [line.encode() + b",x=\xff\n" for line in mounts]
    (folder / "mountinfo").write_bytes(b"".join(lines))
    return folder


@pytest.mark.parametrize("kind", ["ext2", "ext3", "ext4", "xfs", "tmpfs"])
def test_a_file_that_is_overwritten_in_place_keeps_its_space(
    tmp_path: Path, kind: str
) -> None:
    others = mount(4, "btrfs"), mount(145, "btrfs"), mount(450, "btrfs")
    assert keeps_space(FILE, proc(tmp_path, *others, mount(45, kind)))


@pytest.mark.parametrize(
    "kind",
    ["btrfs", "zfs", "bcachefs", "overlay", "nfs4", "fuse.sshfs", "9p", "ext", "ext4x"],
)
def test_what_is_not_known_to_keep_it_does_not(tmp_path: Path, kind: str) -> None:
    others = mount(4, "ext4"), mount(145, "ext4"), mount(450, "ext4")
    assert not keeps_space(FILE, proc(tmp_path, *others, mount(45, kind)))


def test_a_path_that_looks_like_a_kind_is_none(tmp_path: Path) -> None:
    line = mount(45, "btrfs", path="/srv\\040-\\040ext4").replace("/dev/sda1", "-")
    assert not keeps_space(FILE, proc(tmp_path, line.replace("rw,a=b", "ext4 rw")))


def test_where_the_system_does_not_tell_it_does_not(tmp_path: Path) -> None:
    assert not keeps_space(FILE, tmp_path / "none")
    assert not keeps_space(FILE, proc(tmp_path, about="pos:\t0\n"))
    assert not keeps_space(FILE + 1, tmp_path)


def test_a_mount_that_is_not_shown_does_not(tmp_path: Path) -> None:
    assert not keeps_space(FILE, proc(tmp_path, mount(46, "ext4")))


def leave(monkeypatch: pytest.MonkeyPatch, spare: int, blocks: int = 99_999) -> None:
    found = SimpleNamespace(f_blocks=blocks, f_bavail=spare // 512, f_frsize=512)
    monkeypatch.setattr(os, "statvfs", lambda _: found)


def test_some_of_the_disk_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    leave(monkeypatch, SPARE_BYTES)
    check_spare(FILE)
    leave(monkeypatch, SPARE_BYTES - 512)
    with pytest.raises(OSError, match="less than 16 MiB") as caught:
        check_spare(FILE)
    assert caught.value.errno == errno.ENOSPC


def test_a_disk_that_does_not_tell_its_size_is_not_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leave(monkeypatch, 0, blocks=0)
    check_spare(FILE)


@pytest.fixture
def not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sqlite_file, text_files):
        monkeypatch.setattr(module, "keeps_space", lambda _: False)


def full(*_: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.usefixtures("not_kept")
@pytest.mark.parametrize("durability", ["process", "power"])
async def test_a_disk_that_is_full_refuses_commits_and_the_server_lives(
    path: Path, monkeypatch: pytest.MonkeyPatch, durability: Durability
) -> None:
    async with opened(path, durability=durability) as store:
        await begin(store, KEY, OTHER)
        with monkeypatch.context() as patched:
            leave(patched, SPARE_BYTES - 512)
            patched.setattr(os, "pwrite", full)
            assert not store.put_text(KEY, tokens(2, 2)[0])
            drop = Write(key=OTHER, delete=True)
            for write in (appending(tokens(2, 2)), drop):
                with pytest.raises(StoreError, match=r"less than 16 MiB .* Free some"):
                    await store.commit([write], NOW)
            with pytest.raises(StoreError, match="in use"):
                await open_file(path)
            assert await store.read(KEY, 0, ALL) == tokens(1, 1)
            assert await store.meta(OTHER) == meta(1)
        await store.commit([appending(tokens(2, 2)), drop], NOW)
        assert await store.read(KEY, 0, ALL) == tokens(1, 2)


@pytest.mark.parametrize("keeps", [True, False])
async def test_what_a_link_leads_to_is_made(
    path: Path, monkeypatch: pytest.MonkeyPatch, *, keeps: bool
) -> None:
    for module in (sqlite_file, text_files):
        monkeypatch.setattr(module, "keeps_space", lambda _: keeps)
    elsewhere = path.with_name("elsewhere.db")
    path.symlink_to(elsewhere)
    async with opened(path) as store:
        await begin(store)
        assert await store.read(KEY, 0, ALL) == tokens(1, 1)
    assert elsewhere.stat().st_mode & 0o777 == 0o600


async def test_a_link_that_leads_nowhere_is_named_and_nothing_is_left(
    path: Path,
) -> None:
    path.symlink_to(path.with_name("none") / "elsewhere.db")
    for _ in range(2):
        with pytest.raises(StoreError, match=r"No such file .* can be made"):
            await open_file(path)
    assert os.listdir(path.parent) == [path.name]


async def test_a_link_to_a_disk_that_keeps_no_space_is_minded(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = path.with_name("elsewhere.db")
    elsewhere.touch()
    path.symlink_to(elsewhere)

    def is_here(file: int) -> bool:
        return not os.path.samestat(os.fstat(file), elsewhere.stat())

    full_disk = SimpleNamespace(f_blocks=99_999, f_bavail=0, f_frsize=512)
    monkeypatch.setattr(sqlite_file, "keeps_space", is_here)
    async with opened(path) as store:
        await begin(store)
        with monkeypatch.context() as patched:
            real = os.statvfs
            patched.setattr(
                os, "statvfs", lambda of: full_disk if of == elsewhere else real(of)
            )
            with pytest.raises(StoreError, match="less than 16 MiB"):
                await store.commit([appending(tokens(2, 2))], NOW)
        await store.commit([appending(tokens(2, 2))], NOW)


@pytest.mark.usefixtures("not_kept")
async def test_a_server_does_not_start_on_a_full_disk(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_file(path)
    await begin(store)
    stream(store, 2, 5)
    await crash(store)
    with monkeypatch.context() as patched:
        leave(patched, SPARE_BYTES - 512)
        for _ in range(2):
            with pytest.raises(StoreError, match="less than 16 MiB"):
                await open_file(path)
    async with opened(path) as store:
        assert await store.read(KEY, 0, ALL) == tokens(1, 5)


@pytest.mark.parametrize("exists", [True, False])
async def test_a_disk_without_room_for_a_line_is_named_and_nobody_has_the_lock(
    path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    if exists:
        await (await open_file(path)).close()
    files = sorted(os.listdir(path.parent))
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        for _ in range(2):
            with pytest.raises(StoreError, match=r"No space left .*Free some space"):
                await open_file(path)
    assert sorted(os.listdir(path.parent)) == files
    async with opened(path):
        pass


async def test_where_files_keep_their_space_nobody_asks_how_much_is_left(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (sqlite_file, text_files):
        monkeypatch.setattr(module, "keeps_space", lambda _: True)
    leave(monkeypatch, 0)
    async with opened(path) as store:
        await begin(store)
        stream(store, 2, 3)
        assert await store.read(KEY, 0, ALL) == tokens(1, 3)


@pytest.mark.usefixtures("not_kept")
async def test_text_that_finds_no_space_comes_in_commits_until_there_is_some(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pwrite
    async with opened(path) as store:
        await begin(store)
        stream(store, 2, 3)
        with monkeypatch.context() as patched:
            patched.setattr(os, "pwrite", full)
            assert not store.put_text(KEY, tokens(4, 4)[0])
            patched.setattr(os, "pwrite", lambda f, b, at: real(f, b[:20], at))
            assert not store.put_text(KEY, tokens(4, 4)[0])
        assert await store.read(KEY, 0, ALL) == tokens(1, 3)
        await store.commit([appending(tokens(4, 4))], NOW)
        stream(store, 5, 9)
        assert await store.read(KEY, 0, ALL) == tokens(1, 9)
        await crash(store)
        async with opened(path) as again:
            assert await again.read(KEY, 0, ALL) == tokens(1, 9)
            assert await again.meta(KEY) == meta(9), "none was lost"


@pytest.mark.usefixtures("not_kept")
async def test_a_file_that_can_not_be_emptied_is_not_written_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(path) as store:
        await begin(store, KEY, OTHER)
        stream(store, 2, 3, KEY, OTHER)
        gone = Write(key=OTHER, delete=True)
        with monkeypatch.context() as patched, capture_logs() as lines:
            patched.setattr(os, "ftruncate", full)
            await store.commit([gone], NOW)
            assert [line["event"] for line in lines] == ["store_text_not_cleared"]
            assert store._journal.retired
            stream(store, 4, 5)
            with pytest.raises(StoreError, match="No space left"):
                await store.commit([gone], NOW)
            assert len(await texts(path)) == 6
        stream(store, 6, 7)
        await store.commit([gone], NOW)
        assert not await texts(path)
        assert await store.read(KEY, 0, ALL) == tokens(1, 7)
